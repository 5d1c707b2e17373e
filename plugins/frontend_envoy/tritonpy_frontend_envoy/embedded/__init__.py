"""What runs inside Envoy."""

from __future__ import annotations
