"""The command of a worker: `PYTHON THIS_FOLDER DESCRIPTOR [template]`.

DESCRIPTOR is the number of an inherited, connected Unix socket. Given a folder, the interpreter
adds it to the module path and keeps the user's environment variables and packages. So model.py
finds `triton_python_backend_utils`, and nothing needs to be installed.
"""

from __future__ import annotations

import sys

from tritonpy_worker.process import main

if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["template"])
