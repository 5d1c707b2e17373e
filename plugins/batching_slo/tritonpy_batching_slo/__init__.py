"""A batch policy for tritonpy that keeps a latency target."""

from __future__ import annotations
