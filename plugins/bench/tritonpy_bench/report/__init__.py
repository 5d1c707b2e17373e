"""What users see: live view, tables, CSV, JSON, HTML."""

from __future__ import annotations
