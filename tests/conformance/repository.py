"""The model repository that all servers read."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"
BROKEN = HERE / "broken_models.toml"
VARIANTS = HERE / "variants.toml"
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def write(folder: Path) -> Path:
    """Fill `folder` with every model: those of `models/`, those that are too broken to be files of this project, and those that
    are another one with a configuration of their own."""
    shutil.copytree(MODELS, folder, ignore=IGNORED, dirs_exist_ok=True)
    for name, model in _listed(BROKEN).items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(model["config"], encoding="utf-8")
        if "code" in model:
            (version / model.get("file", "model.py")).write_text(model["code"], encoding="utf-8")
    for name, model in _listed(VARIANTS).items():
        shutil.copytree(MODELS / model["like"], folder / name, ignore=IGNORED)
        for path, content in {"config.pbtxt": model["config"], **model.get("files", {})}.items():
            (folder / name / path).write_text(content, encoding="utf-8")
    return folder


def _listed(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
