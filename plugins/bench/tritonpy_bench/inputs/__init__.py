"""The tensors that are sent."""

from __future__ import annotations
