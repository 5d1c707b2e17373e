"""Reports: live view, plain text, CSV, JSON, and HTML."""

from __future__ import annotations
