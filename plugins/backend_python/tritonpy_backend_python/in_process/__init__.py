"""Models in the server's own process: parameter `isolation: "thread"`.

The objects that a model sees, and the rules for what it does with them, are those of the worker: its folder joins the end of `sys.path`.
"""

from __future__ import annotations

import sys

from tritonpy_backend_python.template import WORKER_FOLDER

if str(WORKER_FOLDER) not in sys.path:
    sys.path.append(str(WORKER_FOLDER))
