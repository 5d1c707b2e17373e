"""Traces: sampling rules, settings, and the trace mode that writes Triton's files."""

from __future__ import annotations
