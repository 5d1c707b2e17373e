"""The model repository that all servers read."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

from tritonpy_backend_c import include_directory

HERE = Path(__file__).resolve().parent
MODELS = HERE / "models"
BROKEN = HERE / "broken_models.toml"
VARIANTS = HERE / "variants.toml"
C_MODELS = HERE / "c_models.toml"
C_SOURCES = HERE.parents[1] / "plugins" / "backend_c" / "tests" / "backends"
SECOND_VARIANTS = HERE / "second_repository.toml"
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc")


def write(folder: Path) -> Path:
    """Fill `folder` with every model.

    Those are the models of `models/`, broken models, models of backends in C, and variants: a copy
    of another model with its own configuration, or a configuration alone. Some variants go into the
    second repository.
    """
    shutil.copytree(MODELS, folder, ignore=IGNORED, dirs_exist_ok=True)
    for name, model in _listed(BROKEN).items():
        version = folder / name / "1"
        version.mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(model["config"], encoding="utf-8")
        if "code" in model:
            (version / model.get("file", "model.py")).write_text(model["code"], encoding="utf-8")
    for repository, variants in ((folder, VARIANTS), (second_repository(folder), SECOND_VARIANTS)):
        for name, model in _listed(variants).items():
            _write_variant(repository / name, model)
    for name, model in _listed(C_MODELS).items():
        _write_c_model(folder / name, model)
    return folder


def second_repository(folder: Path) -> Path:
    """Return the folder of the second repository, which servers read if their flags name it."""
    return folder.with_name(f"{folder.name}_second")


def _write_variant(folder: Path, model: dict[str, Any]) -> None:
    if "like" in model:
        shutil.copytree(MODELS / model["like"], folder, ignore=IGNORED)
    else:
        (folder / "1").mkdir(parents=True)
    for path, content in {"config.pbtxt": model["config"], **model.get("files", {})}.items():
        (folder / path).write_text(content, encoding="utf-8")


def _write_c_model(folder: Path, model: dict[str, Any]) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(model["config"], encoding="utf-8")
    source = C_SOURCES / model["source"]
    compiler = ["g++", "-std=c++17"] if source.suffix == ".cc" else ["gcc", "-std=gnu11"]
    options = ["-shared", "-fPIC", "-O1", "-I", str(include_directory())]
    library = folder / f"libtriton_{source.stem}.so"
    subprocess.run([*compiler, *options, "-o", str(library), str(source), "-lpthread"], check=True)


def _listed(path: Path) -> dict[str, dict[str, Any]]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
