"""Servers with the clouds' protocols, and a proxy that injects faults."""

from __future__ import annotations
