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
BESIDE = HERE / "variants_beside.toml"
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def write(folder: Path) -> Path:
    """Fill `folder` with every model: those of `models/`, those that are too broken to be files of this project, and those that
    are another one with a configuration of their own, or no more than a configuration; some of those are in the repository beside it."""
    shutil.copytree(MODELS, folder, ignore=IGNORED, dirs_exist_ok=True)
    for name, model in _listed(BROKEN).items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(model["config"], encoding="utf-8")
        if "code" in model:
            (version / model.get("file", "model.py")).write_text(model["code"], encoding="utf-8")
    for repository, variants in ((folder, VARIANTS), (beside(folder), BESIDE)):
        for name, model in _listed(variants).items():
            _write_variant(repository / name, model)
    return folder


def beside(folder: Path) -> Path:
    """Return the second repository, which servers read that are told so."""
    return folder.with_name(f"{folder.name}_beside")


def _write_variant(folder: Path, model: dict[str, Any]) -> None:
    if "like" in model:
        shutil.copytree(MODELS / model["like"], folder, ignore=IGNORED)
    else:
        (folder / "1").mkdir(parents=True)
    for path, content in {"config.pbtxt": model["config"], **model.get("files", {})}.items():
        (folder / path).write_text(content, encoding="utf-8")


def _listed(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
