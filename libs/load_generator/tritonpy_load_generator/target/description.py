"""Description of a server and a model, from the server's metadata and configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy_load_generator.options import LoadOptions
from tritonpy_load_generator.target.control import ControlClient, JsonObject, RequestRejected
from tritonpy_load_generator.target.metadata import (
    ModelDescription,
    TargetDescription,
    TensorDescription,
)


def open_control(options: LoadOptions) -> ControlClient:
    """Return a control client for the options' protocol; it sends nothing yet."""
    if options.protocol == "http":
        from tritonpy_load_generator.target.http_control import HttpControlClient

        return HttpControlClient(options)
    from tritonpy_load_generator.target.grpc_control import GrpcControlClient

    return GrpcControlClient(options)


def describe(control: ControlClient, model: str, version: str) -> TargetDescription:
    """Return the description of a model. Raises StartupError if the server or the model is missing.

    Servers without configurations (KServe, MLServer) return metadata only. If the first dimension
    of every tensor is variable, it is then assumed to be the batch dimension.
    """
    server = control.server()
    metadata = control.metadata(model, version)
    config = _config(control, model, version)
    return TargetDescription(server, _model(control, metadata, config, model, version))


def read_statistics(
    control: ControlClient, model: ModelDescription, more: Sequence[str] = ()
) -> dict[str, Sequence[JsonObject]] | None:
    """Return the statistics of the model, its members and `more` by name, or None."""
    try:
        found = {model.name: control.statistics(model.name, model.version)}
        for name in (*model.members, *more):
            bare, _, version = name.partition(":")
            found[bare] = control.statistics(bare, version)
    except RequestRejected as error:
        if error.missing:
            return None
        raise
    return found


def _config(control: ControlClient, model: str, version: str) -> JsonObject | None:
    try:
        return control.config(model, version)
    except RequestRejected as error:
        if error.missing:
            return None
        raise


def _model(
    control: ControlClient,
    metadata: JsonObject,
    config: JsonObject | None,
    model: str,
    version: str,
) -> ModelDescription:
    known = config or {}
    max_batch_size = int(known.get("max_batch_size", 0)) if config else _guess_batch(metadata)
    optional = {str(each["name"]) for each in known.get("input", ()) if each.get("optional")}
    members = _members(control, known, set())
    return ModelDescription(
        name=model,
        version=version,
        inputs=_tensors(metadata.get("inputs", ()), max_batch_size, optional),
        outputs=_tensors(metadata.get("outputs", ()), max_batch_size, set()),
        max_batch_size=max_batch_size,
        decoupled=_decoupled(known) or any(_decoupled(each) for each in members.values()),
        sequence=any("sequence_batching" in each for each in (known, *members.values())),
        members=tuple(members),
    )


def _decoupled(config: JsonObject) -> bool:
    return bool(config.get("model_transaction_policy", {}).get("decoupled"))


def _members(control: ControlClient, config: JsonObject, seen: set[str]) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = {}
    for step in config.get("ensemble_scheduling", {}).get("step", ()):
        name = str(step["model_name"])
        if name not in seen:
            seen.add(name)
            found[name] = _config(control, name, "") or {}
            found.update(_members(control, found[name], seen))
    return found


def _guess_batch(metadata: JsonObject) -> int:
    tensors = [*metadata.get("inputs", ()), *metadata.get("outputs", ())]
    shapes = [_shape(each) for each in tensors]
    return 1 if shapes and all(shape and shape[0] == -1 for shape in shapes) else 0


def _shape(tensor: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(
        int(dim) for dim in tensor.get("shape", ())
    )  # int64 is a string in protobuf's JSON


def _tensors(
    tensors: Sequence[JsonObject], max_batch_size: int, optional: set[str]
) -> tuple[TensorDescription, ...]:
    first = 1 if max_batch_size > 0 else 0
    return tuple(
        TensorDescription(
            str(each["name"]),
            str(each["datatype"]),
            _shape(each)[first:],
            str(each["name"]) in optional,
        )
        for each in tensors
    )
