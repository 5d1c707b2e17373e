"""A package inside the version."""

from __future__ import annotations
