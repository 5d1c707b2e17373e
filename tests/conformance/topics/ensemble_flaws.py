"""Ensembles that do not fit their members."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, IndexEntry, get, load, topic, unload

MODELS = "stood_on stood_on_too stood_on_floats stood_on_two stood_on_batches stood_on_stream stood_on_two_inputs versions"
NAME = "standing"
X: dict[str, Any] = {"name": "X", "data_type": "TYPE_INT32", "dims": [-1]}
Y: dict[str, Any] = {"name": "Y", "data_type": "TYPE_INT32", "dims": [-1]}


def step(
    model: str, inputs: dict[str, str], outputs: dict[str, str], version: int | None = -1
) -> dict[str, Any]:
    entry: dict[str, Any] = {"model_name": model, "input_map": inputs, "output_map": outputs}
    return entry if version is None else {**entry, "model_version": version}


def plain(
    model: str, taken: str = "X", made: str = "Y", version: int | None = -1
) -> dict[str, Any]:
    return step(model, {"IN": taken}, {"OUT": made}, version)


def ensemble(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "platform": "ensemble",
        "input": [X],
        "output": [Y],
        "ensemble_scheduling": {"step": steps},
        **more,
    }


def streams(last: dict[str, Any], *outputs: str) -> dict[str, Any]:
    """Return an ensemble with two streams, which `last` may join."""
    two = [step("stood_on_stream", {"IN": "X"}, {"OUT": made}) for made in ("first", "second")]
    return ensemble(*two, last, output=[{**Y, "name": name, "dims": [-1]} for name in outputs])


FLAWS: dict[str, dict[str, Any]] = {
    "a datatype of its input": ensemble(plain("stood_on"), input=[{**X, "data_type": "TYPE_FP32"}]),
    "a datatype of its output": ensemble(plain("stood_on"), output=[{**Y, "data_type": "TYPE_FP32"}]),
    "a datatype between steps": ensemble(plain("stood_on", "X", "mid"), plain("stood_on_floats", "mid", "Y"), output=[{**Y, "data_type": "TYPE_FP32"}]),
    "a shape of its input": ensemble(plain("stood_on_two"), input=[{**X, "dims": [3]}]),
    "a shape of its output": ensemble(plain("stood_on_two"), output=[{**Y, "dims": [3]}]),
    "a rank of its output": ensemble(plain("stood_on"), output=[{**Y, "dims": [-1, -1]}]),
    "a reshaped input": ensemble(plain("stood_on_two"), input=[{**X, "dims": [6], "reshape": {"shape": [2, 3]}}]),
    "a batch size that is too large": ensemble(plain("stood_on_batches"), max_batch_size=4),
    "an input that is not mapped": ensemble(plain("stood_on_two_inputs")),
    "an input that is unknown": ensemble(step("stood_on", {"IN": "X", "OTHER": "X"}, {"OUT": "Y"})),
    "an output that is unknown": ensemble(step("stood_on", {"IN": "X"}, {"OTHER": "Y"})),
    "an unknown model": ensemble(plain("nobody")),
    "two unknown models": ensemble(plain("nobody", "X", "mid"), plain("anybody", "mid", "Y")),
    "an unknown version": ensemble(plain("stood_on", version=7)),
    "no version": ensemble(plain("stood_on", version=None)),
    "a version below the newest": ensemble(plain("stood_on", version=-2)),
    "two streams that one step joins": streams(step("stood_on_two_inputs", {"IN": "first", "IN_MORE": "second"}, {"OUT": "Y"}), "Y"),
    "two streams in its outputs": streams(plain("stood_on", "first", "Y"), "Y", "second"),
    "a stream and an input": ensemble(
        step("stood_on_stream", {"IN": "X"}, {"OUT": "mid"}), step("stood_on_two_inputs", {"IN": "mid", "IN_MORE": "X"}, {"OUT": "Y"}),
    ),
    "no steps": ensemble(),
    "a step without a model": ensemble(plain("")),
    "a step without inputs": ensemble(step("stood_on", {}, {"OUT": "Y"})),
    "a tensor made twice": ensemble(plain("stood_on"), plain("stood_on_too")),
    "a tensor that no step reads": ensemble(plain("stood_on"), plain("stood_on_too", "X", "unread")),
    "an output that no step produces": ensemble(plain("stood_on"), output=[Y, {**Y, "name": "Z"}]),
    "instances": ensemble(plain("stood_on"), instance_group=[{"count": 1}]),
    "a warm-up": ensemble(plain("stood_on"), model_warmup=[{"name": "w", "batch_size": 1}]),
    "an input without dims": ensemble(plain("stood_on"), input=[{**X, "dims": []}]),
    "a backend": ensemble(plain("stood_on"), backend="python"),
    "another platform": {**ensemble(plain("stood_on")), "platform": "onnxruntime_onnx"},
}  # fmt: skip
WHOLE: dict[str, dict[str, Any]] = {
    "one step": ensemble(plain("stood_on")),
    "an older version": ensemble(step("versions", {"IN": "X"}, {"OUT": "Y"}, 1), input=[{**X, "dims": [1]}], output=[{**Y, "data_type": "TYPE_STRING", "dims": [1]}]),
    "batches": ensemble(plain("stood_on_batches"), max_batch_size=2),
    "a batch size of an ensemble alone": ensemble(plain("stood_on"), max_batch_size=4),
    "a batch size of a model alone": ensemble(plain("stood_on_batches")),
    "a batch size that is smaller": ensemble(plain("stood_on_batches"), max_batch_size=1),
    "a stream": ensemble(step("stood_on_stream", {"IN": "X"}, {"OUT": "Y"})),
    "a stream that is said to be none": ensemble(step("stood_on_stream", {"IN": "X"}, {"OUT": "Y"}), model_transaction_policy={"decoupled": False}),
    "no stream that is said to be one": ensemble(plain("stood_on"), model_transaction_policy={"decoupled": True}),
    "fixed and open dims": ensemble(plain("stood_on", "X", "mid"), plain("stood_on_two", "mid", "Y")),
    "a cache": ensemble(plain("stood_on"), response_cache={"enable": True}),
    "parameters and tags": ensemble(plain("stood_on"), parameters={"a": {"string_value": "b"}}, metric_tags={"tag": "value"}),
    "versions of its own": ensemble(plain("stood_on"), version_policy={"all": {}}),
}  # fmt: skip
PATH = f"/v2/models/{NAME}"
LEFT = (unload(NAME), IndexEntry(NAME))
TOPIC = topic(
    "ensemble flaws",
    MODELS,
    [
        *(
            Exchange(f"whole: {name}", (load(NAME, config), get(f"{PATH}/config"), get(PATH), get(f"{PATH}/stats"), *LEFT))
            for name, config in WHOLE.items()
        ),
        *(Exchange(f"flaw: {name}", (load(NAME, config), IndexEntry(NAME), *LEFT)) for name, config in FLAWS.items()),
    ],
)  # fmt: skip
