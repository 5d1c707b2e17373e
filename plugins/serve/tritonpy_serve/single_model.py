"""What `tritonpy serve MODEL` serves: a file, a version folder, a model folder, or a repository."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tritonpy import StartupError
from tritonpy.config import ServerConfig
from tritonpy.plugins import BackendFolders, Backends, PluginManager, install_command
from tritonpy_config.config_file import read_config
from tritonpy_config.known_backends import KNOWN_FORMATS, BackendFiles, formats, package_of


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
    listed = (
        ", ".join(f"{suffix} ({name})" for suffix, (_, name) in sorted(known.items())) or "none"
    )
    missing = [
        form.backend
        for form in KNOWN_FORMATS
        if model.suffix and Path(form.filename).suffix == model.suffix
    ]
    package = package_of(missing[0]) if missing else None
    hint = (
        install_command(package)
        if package
        else "write a config.pbtxt and serve its folder with --model-repository"
    )
    raise StartupError(
        f"no installed backend serves '{model.suffix}' files ({model}); supported suffixes: "
        f"{listed}. To serve it: {hint}"
    )


@contextmanager
def single_model_repository(model: Path, manager: PluginManager, name: str = "") -> Iterator[Path]:
    """Provide a repository with what is in `model`, a model or already a repository.

    - A file, or a folder with a suffix of a model format, is a model with the file's name, or
      `name`.
    - A folder with one model file in it is that model.
    - A folder with version folders or with config.pbtxt is a model. Its name is that in
      config.pbtxt, else `name` or the folder's.
    - Any other folder is a repository itself.

    Raises StartupError if the path does not exist, if no backend serves its format, and for a name
    that is no name of a folder.
    """
    if not model.exists():
        raise StartupError(f"model '{model}' does not exist")
    _check_name(name)
    folders = BackendFolders.with_plugins(
        ServerConfig().backend_directory, manager.table("tritonpy_backend_folders")
    )
    installed = Backends(manager, {}, {}, folders).files()
    if model.is_dir() and model.suffix not in _suffixes(installed):
        files = [each for each in model.iterdir() if each.suffix in _suffixes(installed)]
        if _is_model_folder(model):
            name = _configured_name(model) or name or model.resolve().name
            _check_name(name)
            with tempfile.TemporaryDirectory(prefix="tritonpy-") as folder:
                (Path(folder) / name).symlink_to(model.resolve())
                yield Path(folder)
            return
        if len(files) != 1:
            yield model
            return
        model = files[0]
    with _file_repository(model, name or model.stem, installed) as repository:
        yield repository


@contextmanager
def _file_repository(model: Path, name: str, installed: Sequence[BackendFiles]) -> Iterator[Path]:
    """Provide a temporary repository with the file (or folder) `model` as its only model.

    The repository also contains files in the same folder whose names begin with the model's
    (`model.onnx.data`). It contains those with its name and another suffix, too (weights
    `model.bin` of `model.xml`). Files that the server would load instead of `model` are left out.
    """
    filename = default_filename(model, installed)
    with tempfile.TemporaryDirectory(prefix="tritonpy-") as folder:
        version = Path(folder) / name / "1"
        version.mkdir(parents=True)
        (version / filename).symlink_to(model.resolve())
        for file, companion in _companions(model, filename, installed):
            (version / file).symlink_to(companion.resolve())
        yield Path(folder)


def _companions(
    model: Path, filename: str, installed: Sequence[BackendFiles]
) -> Iterator[tuple[str, Path]]:
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


def _check_name(name: str) -> None:
    """Raise StartupError for a name that would lead out of the temporary repository."""
    if "/" in name or "\0" in name or name in {".", ".."}:
        raise StartupError(f"'{name}' cannot be the name of a model: it must be that of a folder")


def _suffixes(installed: Sequence[BackendFiles]) -> set[str]:
    """Return the suffixes of the formats that an installed backend serves."""
    return {Path(name).suffix for backend in installed for name in backend.default_filenames} - {
        ".py"  # any folder may contain Python files
    }


def _is_model_folder(folder: Path) -> bool:
    return (folder / "config.pbtxt").is_file() or any(
        each.name.isdigit() and each.is_dir() for each in folder.iterdir()
    )


def _configured_name(folder: Path) -> str:
    """Return the name that config.pbtxt gives to the model, or ""."""
    return read_config(folder, "", None)[0].config.name
