"""Queries to the server about itself and the model."""

from __future__ import annotations
