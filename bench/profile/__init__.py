"""Profile of one request by stage: `python -m bench.profile`."""

from __future__ import annotations
