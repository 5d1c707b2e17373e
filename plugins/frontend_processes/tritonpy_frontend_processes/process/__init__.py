"""The program of a frontend process: frontends, with the engine in another process."""

from __future__ import annotations
