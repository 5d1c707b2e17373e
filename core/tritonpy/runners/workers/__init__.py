"""Instances that are processes: the server's side of the worker protocol."""

from __future__ import annotations
