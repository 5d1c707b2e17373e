"""`tritonpy debug`: one model in the main thread of the command's process, so that a debugger works."""

from __future__ import annotations
