"""A client without sockets, with the interface of tritonclient."""

from __future__ import annotations
