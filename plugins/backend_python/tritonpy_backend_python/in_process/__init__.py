"""Model instances in the server's process, for `isolation: "thread"`.

The objects and rules that models see are those of the worker. Its folder is appended to `sys.path`.
"""

from __future__ import annotations

import os
import sys

from tritonpy_backend_python.worker_folder import WORKER_FOLDER

if str(WORKER_FOLDER) not in sys.path:
    sys.path.append(str(WORKER_FOLDER))

from tritonpy_worker.failure import hide_frames  # importable from here on

hide_frames(os.path.dirname(__file__))
