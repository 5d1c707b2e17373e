"""Models in the server's own process: parameter `isolation: "thread"`.

The objects that a model sees, and the rules for what it does with them, are those of the worker: its folder joins the end of `sys.path`.
"""

from __future__ import annotations

import os
import sys

from tritonpy_backend_python.worker_folder import WORKER_FOLDER

if str(WORKER_FOLDER) not in sys.path:
    sys.path.append(str(WORKER_FOLDER))

from tritonpy_worker.failure import leave_out  # from here on it can be imported

leave_out(os.path.dirname(__file__))
