"""`python -m tritonpy` runs the command `tritonpy`."""

from __future__ import annotations

import sys

from tritonpy.cli import main

if __name__ == "__main__":
    sys.exit(main())
