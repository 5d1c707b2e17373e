"""The server's side of the worker protocol, for instances in processes of their own."""

from __future__ import annotations
