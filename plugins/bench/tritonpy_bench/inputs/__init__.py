"""Input tensors of requests: generated, or read from files."""

from __future__ import annotations
