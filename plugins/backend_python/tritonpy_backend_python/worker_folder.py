"""The folder that runs in a model's interpreter."""

from __future__ import annotations

from pathlib import Path

WORKER_FOLDER = Path(__file__).with_name("worker")
