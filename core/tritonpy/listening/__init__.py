"""What frontends of every protocol share when they open a port and when they close it: TLS files, Unix domain sockets, answers on their way."""

from __future__ import annotations
