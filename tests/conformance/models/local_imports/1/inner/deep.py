"""A module in a package inside the version."""

from __future__ import annotations

from .. import relative_helper

DEEP = f"deep {relative_helper.NAME}"
