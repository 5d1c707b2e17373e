"""The model repository that all servers read."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"
BROKEN = HERE / "broken_models.toml"
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def write(folder: Path) -> Path:
    """Fill `folder` with every model: those of `models/`, and those that are too broken to be files of this project."""
    shutil.copytree(MODELS, folder, ignore=IGNORED, dirs_exist_ok=True)
    for name, model in tomllib.loads(BROKEN.read_text(encoding="utf-8")).items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(model["config"], encoding="utf-8")
        if "code" in model:
            (version / model.get("file", "model.py")).write_text(model["code"], encoding="utf-8")
    return folder
