"""The command of a worker: `PYTHON THIS_FOLDER DESCRIPTOR [template]`, the number of a connected Unix socket that it inherits.

Given a folder, the interpreter puts it on the module path and leaves everything else as it is for any program of the user's: environment
variables, the user's own packages. So model.py finds `triton_python_backend_utils`, and nothing need be installed.
"""

from __future__ import annotations

import sys

from tritonpy_worker.process import main

if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["template"])
