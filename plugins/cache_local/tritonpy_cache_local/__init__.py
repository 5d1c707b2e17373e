"""A response cache for tritonpy in the server's memory."""

from __future__ import annotations
