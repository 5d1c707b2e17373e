"""What frontends of every protocol share when they open a port: TLS files and Unix domain sockets."""

from __future__ import annotations
