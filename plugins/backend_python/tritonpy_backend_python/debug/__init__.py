"""`tritonpy debug`: one model in the main thread of the command's process, so that a debugger works."""

from __future__ import annotations

from tritonpy_backend_python import in_process  # noqa: F401 - the runtime of models can be imported from here on
