"""The program of a frontend process: frontends, with the engine in another process.

Start at `main` and `service`.
"""

from __future__ import annotations
