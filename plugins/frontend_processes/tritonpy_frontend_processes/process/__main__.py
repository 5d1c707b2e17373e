"""The command of a frontend process. Its argument is the number of an inherited descriptor."""

from __future__ import annotations

import sys

from tritonpy_frontend_processes.process.main import main

if __name__ == "__main__":
    main(int(sys.argv[1]))
