"""The profile of one request, stage by stage: `python -m bench.profile`."""

from __future__ import annotations
