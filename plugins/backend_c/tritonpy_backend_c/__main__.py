"""The process that completes one configuration: see `completion`."""

from __future__ import annotations

import os
import sys

import msgspec

from tritonpy_backend_c.completion import complete

result = complete(sys.stdin.buffer.read())
sys.stdout.buffer.write(b"\n" + msgspec.json.encode(result))
sys.stdout.flush()
os._exit(0)  # destructors of the backend's libraries must not change the result
