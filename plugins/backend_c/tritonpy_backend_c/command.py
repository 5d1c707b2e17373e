"""The command `tritonpy check-backend`."""

from __future__ import annotations

import argparse
from typing import ClassVar

from tritonpy import Command


class CheckBackendCommand(Command):
    """placeholder"""

    usage_status: ClassVar[int] = 2

    def run(self, arguments: argparse.Namespace) -> int:
        return 0
