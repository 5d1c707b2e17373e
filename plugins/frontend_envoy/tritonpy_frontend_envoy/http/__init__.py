"""The HTTP frontend behind Envoy."""

from __future__ import annotations
