"""The command `tritonpy debug`: runs one model in the main thread, so that a debugger works.

Start at `command` and `session`.
"""

from __future__ import annotations

from tritonpy_backend_python import in_process  # noqa: F401 - makes the runtime of models importable
