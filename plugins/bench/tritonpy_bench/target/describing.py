"""Puts together what a server tells of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tritonpy_bench.options import BenchOptions
from tritonpy_bench.target.control import Control, Plain, Refused
from tritonpy_bench.target.facts import ModelFacts, TargetFacts, TensorFacts


def open_control(options: BenchOptions) -> Control:
    """Return the connection for questions; nothing is asked yet."""
    if options.protocol == "http":
        from tritonpy_bench.target.http_control import HttpControl

        return HttpControl(options)
    from tritonpy_bench.target.grpc_control import GrpcControl

    return GrpcControl(options)


def describe(control: Control, model: str, version: str) -> TargetFacts:
    """Ask what is needed to load a model. Raises StartupError where nobody answers or the model is not there.

    Servers without configurations (KServe, MLServer) tell the metadata alone: a first dimension of every tensor that varies is then
    taken for the batch's.
    """
    server = control.server()
    metadata = control.metadata(model, version)
    config = _config(control, model, version)
    return TargetFacts(server, _model(control, metadata, config, model, version))


def readings(control: Control, facts: ModelFacts, more: Sequence[str] = ()) -> dict[str, Sequence[Plain]] | None:
    """Return the statistics of the model and of those that it stands on, by name; None where the server has none."""
    try:
        found = {facts.name: control.statistics(facts.name, facts.version)}
        for name in (*facts.members, *more):
            bare, _, version = name.partition(":")
            found[bare] = control.statistics(bare, version)
    except Refused as error:
        if error.missing:
            return None
        raise
    return found


def _config(control: Control, model: str, version: str) -> Plain | None:
    try:
        return control.config(model, version)
    except Refused as error:
        if error.missing:
            return None
        raise


def _model(control: Control, metadata: Plain, config: Plain | None, model: str, version: str) -> ModelFacts:
    known = config or {}
    max_batch_size = int(known.get("max_batch_size", 0)) if config else _guessed_batch(metadata)
    optional = {str(each["name"]) for each in known.get("input", ()) if each.get("optional")}
    members = _members(control, known, set())
    return ModelFacts(
        name=model,
        version=version,
        inputs=_tensors(metadata.get("inputs", ()), max_batch_size, optional),
        outputs=_tensors(metadata.get("outputs", ()), max_batch_size, set()),
        max_batch_size=max_batch_size,
        decoupled=_decoupled(known) or any(_decoupled(each) for each in members.values()),
        sequence=any("sequence_batching" in each for each in (known, *members.values())),
        members=tuple(members),
    )


def _decoupled(config: Plain) -> bool:
    return bool(config.get("model_transaction_policy", {}).get("decoupled"))


def _members(control: Control, config: Plain, seen: set[str]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for step in config.get("ensemble_scheduling", {}).get("step", ()):
        name = str(step["model_name"])
        if name not in seen:
            seen.add(name)
            found[name] = _config(control, name, "") or {}
            found.update(_members(control, found[name], seen))
    return found


def _guessed_batch(metadata: Plain) -> int:
    tensors = [*metadata.get("inputs", ()), *metadata.get("outputs", ())]
    shapes = [_shape(each) for each in tensors]
    return 1 if shapes and all(shape and shape[0] == -1 for shape in shapes) else 0


def _shape(tensor: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(dim) for dim in tensor.get("shape", ()))  # int64 is text in protobuf's JSON


def _tensors(tensors: Sequence[Plain], max_batch_size: int, optional: set[str]) -> tuple[TensorFacts, ...]:
    first = 1 if max_batch_size > 0 else 0
    return tuple(
        TensorFacts(str(each["name"]), str(each["datatype"]), _shape(each)[first:], str(each["name"]) in optional)
        for each in tensors
    )
