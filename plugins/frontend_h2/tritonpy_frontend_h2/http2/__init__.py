"""HTTP/2 for servers, independent of the network: bytes in, calls and bytes out."""

from __future__ import annotations
