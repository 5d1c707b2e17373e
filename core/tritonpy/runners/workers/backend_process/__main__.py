"""The command of a worker process: its argument is the number of the descriptor that it inherits."""

from __future__ import annotations

import sys

from tritonpy.runners.workers.backend_process.main import main

if __name__ == "__main__":
    main(int(sys.argv[1]))
