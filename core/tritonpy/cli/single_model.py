"""`tritonpy serve model.onnx`: a temporary repository with one model made from one file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tritonpy.config.known_backends import KNOWN_FORMATS, BackendFiles, formats, package_of
from tritonpy.errors import StartupError
from tritonpy.installation import install_command
from tritonpy.plugins import PluginManager
from tritonpy.plugins.backends import Backends


def default_filename(model: Path, installed: Sequence[BackendFiles]) -> str:
    """Return the file name by which a backend recognizes `model`, chosen by its suffix.

    Raises StartupError with the known suffixes, and the package that supports this one.
    """
    known: dict[str, tuple[str, str]] = {}
    for backend in installed:
        for filename in backend.default_filenames:
            known.setdefault(Path(filename).suffix, (filename, backend.name))
    if model.suffix in known:
        return known[model.suffix][0]
    listed = ", ".join(f"{suffix} ({name})" for suffix, (_, name) in sorted(known.items())) or "none"
    if model.is_dir() and not model.suffix:
        raise StartupError(
            f"'{model}' is a folder, not a model file: serve the models in it with --model-repository={model}, or give one of their files"
        )
    missing = [form.backend for form in KNOWN_FORMATS if model.suffix and Path(form.filename).suffix == model.suffix]
    package = package_of(missing[0]) if missing else None
    hint = install_command(package) if package else "write a config.pbtxt and serve its folder with --model-repository"
    raise StartupError(
        f"no installed backend serves '{model.suffix}' files ({model}); supported suffixes: {listed}. To serve it: {hint}"
    )


@contextmanager
def single_model_repository(model: Path, manager: PluginManager) -> Iterator[Path]:
    """Provide a temporary repository with the file (or folder) `model` as its only model.

    The model has the file's name. The repository also contains files in the same folder whose names
    begin with the model's (`model.onnx.data`). It contains those with its name and another suffix,
    too (weights `model.bin` of `model.xml`). Files that the server would load instead of `model`
    are left out.
    """
    if not model.exists():
        raise StartupError(f"model '{model}' does not exist")
    installed = Backends(manager, {}, {}).files()
    filename = default_filename(model, installed)
    with tempfile.TemporaryDirectory(prefix="tritonpy-") as folder:
        version = Path(folder) / model.stem / "1"
        version.mkdir(parents=True)
        (version / filename).symlink_to(model.resolve())
        for name, companion in _companions(model, filename, installed):
            (version / name).symlink_to(companion.resolve())
        yield Path(folder)


def _companions(model: Path, filename: str, installed: Sequence[BackendFiles]) -> Iterator[tuple[str, Path]]:
    """Yield the files that belong to `model`, each with its name in the version folder."""
    order = [form.filename for form in formats(installed)]
    preferred = order[: order.index(filename)]
    for path in model.parent.iterdir():
        if path.name.startswith(model.name):
            if path.name != model.name:
                yield path.name, path
        elif path.stem == model.stem and path.is_file():
            name = Path(filename).with_suffix(path.suffix).name
            if name not in preferred:
                yield name, path
