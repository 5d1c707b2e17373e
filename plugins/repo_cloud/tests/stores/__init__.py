"""Servers that speak the clouds' protocols, and a proxy that fails on purpose."""

from __future__ import annotations
