"""Traces: who is traced, what becomes of it, and the mode that writes Triton's files."""

from __future__ import annotations
