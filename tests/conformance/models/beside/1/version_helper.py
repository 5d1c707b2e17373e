"""Found in the folder of the version."""

from __future__ import annotations

VERSION_HELPER = "beside model.py"
