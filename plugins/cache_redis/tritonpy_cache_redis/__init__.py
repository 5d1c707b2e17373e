"""A response cache for tritonpy that servers share through Redis."""

from __future__ import annotations
