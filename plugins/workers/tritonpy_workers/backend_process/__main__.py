"""Command line of a worker process; the argument is the number of an inherited descriptor."""

from __future__ import annotations

import sys

from tritonpy_workers.backend_process.main import main

if __name__ == "__main__":
    main(int(sys.argv[1]))
