"""Completion of a configuration from a model's file names and from its backend. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tritonpy_config.known_backends import BackendFiles, ModelFormat, formats
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_types.errors import Internal, InvalidArgument


@dataclass(frozen=True, slots=True)
class _Version:
    """The contents of the first version's folder."""

    files: frozenset[str]
    folders: frozenset[str]

    def has(self, form: ModelFormat) -> bool:
        name = form.filename
        return (form.is_folder is not True and name in self.files) or (
            form.is_folder is not False and name in self.folders
        )


def fill_backend(
    config: ModelConfig,
    model_name: str,
    files: Iterable[str],
    installed: Sequence[BackendFiles] = (),
) -> ModelConfig:
    """Return `config` with name, backend, platform and default file name filled in where possible.

    `files` are the paths of the model's files relative to its folder, with slashes: `1/model.onnx`.
    The version folder that sorts first as text decides. The configuration has precedence over the
    folder's contents. Triton's own backends are known even if they are not installed. Raises
    InvalidArgument if neither a file nor the suffix of the model's name determines the backend.
    """
    completed = ModelConfig()
    completed.CopyFrom(config)
    completed.name = config.name or model_name
    version = _first_version(files)
    candidates = [
        form for form in formats(installed) if not config.backend or form.backend == config.backend
    ]  # fmt: skip
    form = _matching(config, version, candidates)
    if form is not None:
        _fill(completed, form)
    elif not (config.backend or config.platform or config.default_model_filename):
        _fill(completed, _named_by_model(model_name))
    return completed


def _first_version(files: Iterable[str]) -> _Version:
    by_version: dict[str, list[list[str]]] = {}
    for path in files:
        head, *rest = path.split("/")
        if rest and head.isdecimal():
            by_version.setdefault(head, []).append(rest)
    entries = by_version[min(by_version)] if by_version else []
    return _Version(
        frozenset(entry[0] for entry in entries if len(entry) == 1),
        frozenset(entry[0] for entry in entries if len(entry) > 1),
    )


def _matching(
    config: ModelConfig, version: _Version, candidates: Sequence[ModelFormat]
) -> ModelFormat | None:
    platform, filename = config.platform, config.default_model_filename
    if platform:
        found = _first(form for form in candidates if form.platform == platform)
        if found is not None:
            return found
    if filename:
        found = _first(form for form in candidates if form.filename == filename)
    elif not platform:
        found = _first(form for form in candidates if form.filename and version.has(form))
    else:
        found = None
    if found is None and config.backend:
        found = _first(candidates)
    return found


def _first(candidates: Iterable[ModelFormat]) -> ModelFormat | None:
    return next(iter(candidates), None)


def _fill(config: ModelConfig, form: ModelFormat) -> None:
    config.backend = form.backend
    config.platform = config.platform or form.platform
    config.default_model_filename = config.default_model_filename or form.filename


def _named_by_model(model_name: str) -> ModelFormat:
    _, dot, backend = model_name.partition(".")
    if not dot:
        raise InvalidArgument(
            f"Invalid model name: Could not determine backend for model '{model_name}' with no "
            "backend in model "
            "configuration. Expected model name of the form 'model.<backend_name>'."
        )
    return ModelFormat(backend, "", f"model.{backend}")


def merge_auto_complete(config: ModelConfig, completed: ModelConfig) -> ModelConfig:
    """Return `config` with the fields that a backend may complete.

    They are max_batch_size, inputs, outputs, the scheduling choice and decoupled. Other fields of
    `completed` are ignored. Normalize the result again. Raises Internal if `completed` selects
    another kind of scheduling than `config`.
    """
    merged = ModelConfig()
    merged.CopyFrom(config)
    merged.max_batch_size = completed.max_batch_size
    for repeated in ("input", "output"):
        merged.ClearField(repeated)
        getattr(merged, repeated).extend(getattr(completed, repeated))
    _merge_scheduling(merged, completed)
    if completed.HasField("model_transaction_policy"):
        merged.model_transaction_policy.decoupled = completed.model_transaction_policy.decoupled
    return merged


def _merge_scheduling(merged: ModelConfig, completed: ModelConfig) -> None:
    before, after = (
        merged.WhichOneof("scheduling_choice"),
        completed.WhichOneof("scheduling_choice"),
    )
    if before is None:
        if after is not None:
            getattr(merged, after).CopyFrom(getattr(completed, after))
    elif before != after:
        raise Internal(
            f"Cannot update scheduling choice from {_number(before)} to {_number(after)} when "
            "auto-completing."
        )


def _number(choice: str | None) -> int:
    return 0 if choice is None else ModelConfig.DESCRIPTOR.fields_by_name[choice].number
