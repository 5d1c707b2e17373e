"""File names in a configuration: resolution in the model's folder, and checks of foreign paths."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from tritonpy_config.problem import ConfigProblem, entry
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import InvalidArgument

MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
"""The prefix of paths in a configuration that are relative to the model's folder."""
MAX_NAME_BYTES, MAX_PATH_BYTES = 255, 4096  # Linux's NAME_MAX and PATH_MAX

_VERSION, _WARMUP, _INITIAL_STATE = ("version",), ("warmup",), ("initial_state",)
_FOREIGN = (
    "leads out of the model's folder: in a load request that is allowed only for a path that the "
    "model's own configuration file has in this place"
)


def resolve_model_file(name: str, folder: Path, model_directory: Path) -> Path:
    """Return the path of the file `name` of a configuration, relative to `folder`.

    `folder` is the model's `model_directory` or a folder in it. As in Triton, a leading slash is
    dropped. `..` is resolved by name before any link is followed, so that the path stays inside
    `model_directory`. Links in the folder are followed, since the owner of the folder created them.
    Raises InvalidArgument for a name that no file of the model can have.
    """
    try:
        base = folder.relative_to(model_directory).parts
    except ValueError:
        model_directory, base = folder, ()
    return model_directory.joinpath(*relative_parts(name, base))


def relative_parts(name: str, base: Collection[str] = ()) -> list[str]:
    """Return the components of the path `name`, relative to the model's folder.

    `base` is the folder, relative to the model's, that `name` is relative to. Raises
    InvalidArgument as `resolve_model_file` does.
    """
    parts = list(base)
    for part in PurePosixPath(name.lstrip("/")).parts:
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        else:
            raise InvalidArgument(f"'{shortened(name)}' is outside the model's folder")
    if "\0" in name:
        raise InvalidArgument(f"{shortened(name)!r} has a null character, which no file name has")
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"{shortened(name)!r} is not text that a file name can have: {error.reason}"
        ) from error
    if max(sizes, default=0) > MAX_NAME_BYTES or sum(sizes) + len(sizes) > MAX_PATH_BYTES:
        raise InvalidArgument(
            f"'{shortened(name)}' is too long: a path has at most {MAX_PATH_BYTES} bytes, "
            f"and {MAX_NAME_BYTES} between two slashes"
        )
    return parts


def shortened(name: str) -> str:
    """Return `name` for an error text, truncated if it is very long."""
    return name if len(name) <= MAX_NAME_BYTES else f"{name[:MAX_NAME_BYTES]}..."


def file_name_problems(config: ModelConfig) -> Iterator[ConfigProblem]:
    """Yield problems of file names that leave the model's folder, or that no file can have.

    The field `runtime` is relative to the backend's folder, not to the model's.
    """
    for path, name, base in _file_names(config):
        try:
            relative_parts(name, base)
        except InvalidArgument as error:
            yield ConfigProblem(path, error.message)
    if ".." in PurePosixPath(config.runtime).parts:
        text = (
            f"backend library name '{shortened(config.runtime)}' escapes backend directory "
            f"'{config.backend}', for model '{config.name}', "
        )
        yield ConfigProblem("runtime", f"{text}check model config runtime field")


def _file_names(config: ModelConfig) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield key, name and base folder of each file name in a configuration."""
    yield "default_model_filename", config.default_model_filename, _VERSION
    for capability, name in sorted(config.cc_model_filenames.items()):
        yield entry("cc_model_filenames", capability), name, _VERSION
    for index, output in enumerate(config.output):
        yield f"output[{index}].label_filename", output.label_filename, ()
    for index, sample in enumerate(config.model_warmup):
        for tensor in sorted(sample.inputs):
            path = entry(f"model_warmup[{index}].inputs", tensor)
            yield f"{path}.input_data_file", sample.inputs[tensor].input_data_file, _WARMUP
    for index, state in enumerate(config.sequence_batching.state):
        for number, initial in enumerate(state.initial_state):
            path = f"sequence_batching.state[{index}].initial_state[{number}].data_file"
            yield path, initial.data_file, _INITIAL_STATE


def foreign_path_problems(
    config: ModelConfig, own: ModelConfig, path_parameters: Collection[str], model_directory: Path
) -> Iterator[ConfigProblem]:
    """Yield problems of paths in a load request's `config` that leave the model's folder.

    Paths that the model's `own` configuration contains are allowed. `path_parameters` are the
    parameters, of the model or of an accelerator, that the backend uses as paths of the server's
    file system.
    """
    allowed = dict(_paths(own, path_parameters))
    for key, value in _paths(config, path_parameters):
        if value != allowed.get(key) and not all(
            _is_inside(path, model_directory) for path in value.split(";")
        ):
            yield ConfigProblem(key, f"'{shortened(value)}' {_FOREIGN}")


def _paths(config: ModelConfig, path_parameters: Collection[str]) -> Iterator[tuple[str, str]]:
    def named(key: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        return (
            (entry(key, name), values[name]) for name in sorted(values) if name in path_parameters
        )

    yield from named(
        "parameters", {name: value.string_value for name, value in config.parameters.items()}
    )
    for index, library in enumerate(config.model_operations.op_library_filename):
        yield f"model_operations.op_library_filename[{index}]", library
    accelerators = config.optimization.execution_accelerators
    for kind in ("gpu_execution_accelerator", "cpu_execution_accelerator"):
        for index, accelerator in enumerate(getattr(accelerators, kind)):
            path = f"optimization.execution_accelerators.{kind}[{index}].parameters"
            yield from named(path, accelerator.parameters)


def _is_inside(path: str, model_directory: Path) -> bool:
    if path.startswith(MODEL_DIRECTORY):
        path = f"{model_directory}{path.removeprefix(MODEL_DIRECTORY)}"
    if not path:
        return True
    return PurePosixPath(os.path.normpath(path)).is_relative_to(os.path.normpath(model_directory))
