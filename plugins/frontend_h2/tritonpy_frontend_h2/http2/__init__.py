"""HTTP/2 for servers, without a network: bytes in, calls and bytes out."""

from __future__ import annotations
