"""Rules for labels, warm-up data, security and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from tritonpy_checks import Finding, Level, LintModel, LintRule
from tritonpy_checks.machine import size_text
from tritonpy_config.model_files import relative_parts
from tritonpy_config.model_fit import dims_text
from tritonpy_lint.rules.server_rule import GOOD, TENSORS, ServerRule, python_model
from tritonpy_protos.model_config_pb2 import (
    DataType,
    ModelConfig,
    ModelInput,
    ModelSequenceBatching,
    ModelWarmup,
)
from tritonpy_types import DATATYPE_OF_NUMBER
from tritonpy_types.errors import InvalidArgument

BASE = f'backend: "python"\n{TENSORS}'
_SECRET = re.compile(
    r"(?i)(password|passwd|secret|token|api_?key|access_?key|credential|private_?key)"
)
_PICKLES = (".pkl", ".pickle", ".joblib", ".dill")
_WRITABLE_BY_OTHERS = 0o002
_SAMPLE = 'model_warmup {{ name: "sample" batch_size: 1 inputs {{ key: "IN" value: {{ {} }} }} }}\n'


class Labels(LintRule):
    """F004: a label file that is missing or does not fit."""

    level = Level.WARNING
    title = "The label file is missing or does not fit"
    reason = "Classification requests return the line of the label file with the class's number."
    bad = python_model(
        'backend: "python"\n'
        'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" }\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield an error for a missing or unreadable file, and a warning for too few lines."""
        for index, output in enumerate(model.given.output):
            if not output.label_filename:
                continue
            key = f"output[{index}].label_filename"
            try:
                path = "/".join(relative_parts(output.label_filename))
            except InvalidArgument:  # reported by another rule
                continue
            content = model.read(path)
            if content is None:
                yield self.finding(
                    model, key, f"the label file '{output.label_filename}' does not exist",
                    "Put it into the model's folder, one label per line, or delete the field.",
                    level=Level.ERROR,
                )  # fmt: skip
                continue
            yield from self._content(model, key, content, prod(output.dims))

    def _content(
        self, model: LintModel, key: str, content: bytes, classes: int
    ) -> Iterator[Finding]:
        try:
            lines = content.decode().splitlines()
        except UnicodeDecodeError:
            yield self.finding(
                model, key, "the label file is not UTF-8", "Save the file as UTF-8.",
                level=Level.ERROR,
            )  # fmt: skip
            return
        if not lines:
            yield self.finding(model, key, "the label file is empty", "Write one label per line.")
        elif classes > 1 and len(lines) < classes:
            yield self.finding(
                model, key, f"the label file has {len(lines)} lines for {classes} classes",
                "Write one label per line, in the order of the classes.",
            )  # fmt: skip


class Warmup(ServerRule):
    """W001: a warm-up sample that does not fit the model."""

    title = "A warm-up sample does not fit the model"
    reason = "Warm-up runs the sample like a request, and a failed warm-up fails the load."
    remedy = "Give each input of the sample data_type, dims without -1, and one kind of data."
    bad = python_model(BASE + _SAMPLE.format("data_type: TYPE_FP32 dims: [ 5 ] zero_data: true"))
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the server's problems, then inputs that do not fit the configured tensors."""
        yield from super().check(model)
        config = model.config
        if config is None or any(problem.code == self.code for problem in model.problems):
            return
        for index, sample in enumerate(config.model_warmup):
            if sample.batch_size > 0:
                yield from self._sample(model, config, f"model_warmup[{index}]", sample)

    def _sample(
        self, model: LintModel, config: ModelConfig, key: str, sample: ModelWarmup
    ) -> Iterator[Finding]:
        tensors = {tensor.name: tensor for tensor in config.input}
        for name, tensor in tensors.items():
            if name not in sample.inputs and not tensor.optional:
                yield self.finding(
                    model, key, f"the sample '{sample.name}' has no input '{name}'",
                    "Add it: a warm-up request needs every input.", level=Level.ERROR,
                )  # fmt: skip
        for name in sorted(sample.inputs):
            place, given = f'{key}.inputs["{name}"]', sample.inputs[name]
            if name in tensors:
                text = _mismatch(tensors[name], given)
                if text:
                    yield self.finding(model, place, f"warm-up input '{name}' {text}",
                                       self.remedy, level=Level.ERROR)  # fmt: skip
            if given.WhichOneof("input_data_type") == "input_data_file":
                yield from self._file(model, place, given)
            elif given.random_data and given.data_type in {
                DataType.TYPE_INT32, DataType.TYPE_INT64
            }:  # fmt: skip
                yield self.finding(
                    model, place,
                    f"random integers for '{name}' are no valid indices of an embedding",
                    "Use zero_data: true, or a file with valid indices.", level=Level.WARNING,
                )  # fmt: skip

    def _file(self, model: LintModel, key: str, given: ModelWarmup.Input) -> Iterator[Finding]:
        try:
            path = "/".join(relative_parts(given.input_data_file, ("warmup",)))
        except InvalidArgument:  # reported by another rule
            return
        content = model.read(path)
        kind = DATATYPE_OF_NUMBER.get(given.data_type)
        needed = prod(given.dims) * kind.itemsize if kind is not None else 0
        if content is None:
            yield self.finding(
                model, key, f"the file '{path}' does not exist",
                "Put it into the folder 'warmup' of the model.", level=Level.ERROR,
            )  # fmt: skip
        elif len(content) < needed:
            yield self.finding(
                model, key, f"the file '{path}' has {len(content)} bytes, {needed} are needed",
                "Write the raw values of one row.", level=Level.ERROR,
            )  # fmt: skip


def _mismatch(tensor: ModelInput, given: ModelWarmup.Input) -> str:
    """Return how a warm-up input differs from the configured tensor, or ""."""
    if tensor.data_type != given.data_type:
        return (
            f"has the type {DataType.Name(given.data_type)}, the model expects "
            f"{DataType.Name(tensor.data_type)}"
        )
    fits = len(tensor.dims) == len(given.dims) and all(
        size in {-1, other} for size, other in zip(tensor.dims, given.dims, strict=True)
    )
    if fits:
        return ""
    return f"has the shape {dims_text(given.dims)}, the model expects {dims_text(tensor.dims)}"


class InitialState(LintRule):
    """Q002: the initial state of a sequence without its data."""

    level = Level.ERROR
    title = "The initial state of a sequence has no data"
    reason = "Each new sequence starts with the values of the state's file, or with zeros."
    bad = python_model(
        f'{BASE}sequence_batching {{ state {{ input_name: "S" output_name: "T" '
        "data_type: TYPE_FP32 dims: [ 4 ] initial_state { data_type: TYPE_FP32 dims: [ 4 ] "
        'name: "start" data_file: "missing" } } }\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per state whose data are missing or too short."""
        for index, state in enumerate(model.given.sequence_batching.state):
            for initial in state.initial_state[:1]:
                key = f"sequence_batching.state[{index}].initial_state[0]"
                text = _initial_state_problem(model, state, initial)
                if text:
                    advice = "Write zero_data: true, or a file in the folder 'initial_state'."
                    yield self.finding(model, key, text, advice)


def _initial_state_problem(
    model: LintModel,
    state: ModelSequenceBatching.State,
    initial: ModelSequenceBatching.InitialState,
) -> str:
    """Return what is wrong with the data of an initial state, or ""."""
    kind = initial.WhichOneof("state_data")
    if kind is None:
        return f"the state '{state.input_name}' has neither zero_data nor data_file"
    if kind == "zero_data":
        return ""
    try:
        path = "/".join(relative_parts(initial.data_file, ("initial_state",)))
    except InvalidArgument:  # reported by another rule
        return ""
    content, datatype = model.read(path), DATATYPE_OF_NUMBER.get(state.data_type)
    if content is None:
        return f"the file '{path}' does not exist"
    needed = prod(initial.dims) * datatype.itemsize if datatype is not None else 0
    if len(content) < needed:
        return f"the file '{path}' has {len(content)} bytes, {needed} are needed"
    return ""


class SecretParameter(LintRule):
    """X001: a secret in a parameter."""

    title = "A parameter looks like a secret"
    reason = "Anyone who may read the model's configuration over the network sees its parameters."
    bad = python_model(
        f'{BASE}parameters {{ key: "api_key" value: {{ string_value: "k-123" }} }}\n'
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per parameter whose name suggests a secret; its value is not shown."""
        for name in sorted(model.given.parameters):
            value = model.given.parameters[name].string_value
            if _SECRET.search(name) and value and not value.startswith(("$", "/", "file:")):
                yield self.finding(
                    model, f'parameters["{name}"]', f"the parameter '{name}' looks like a secret",
                    "Read it from an environment variable or from a file that only the server "
                    "can read.",
                )  # fmt: skip


class WritableFolder(LintRule):
    """X002: other users of the machine may change the model."""

    title = "Every user of this machine may change the model"
    reason = "Who can write a model's files can run code in the server."
    bad = python_model(BASE)
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield one finding if the model's folder is writable for all users."""
        if model.folder is None:
            return
        mode = model.folder.stat().st_mode
        if mode & _WRITABLE_BY_OTHERS:
            yield self.finding(
                model, "", f"the folder is writable for all users (mode {mode & 0o777:o})",
                f"Run chmod -R o-w '{model.folder}'.", file=str(model.folder),
            )  # fmt: skip


class PickleFile(LintRule):
    """X003: a pickle file."""

    title = "A pickle file is part of the model"
    reason = "Loading a pickle file runs the code that it contains."
    bad = python_model(BASE, **{"1/vocabulary.pkl": "x"})
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per file."""
        for name in sorted(model.files):
            if name.lower().endswith(_PICKLES):
                yield self.finding(
                    model, "", f"'{name}' is a pickle file",
                    "Store data as JSON, npy or safetensors; load pickles only from people you "
                    "trust.",
                    file=f"{model.folder or model.name}/{name}",
                )  # fmt: skip


class MemoryExceeded(LintRule):
    """M001: the models of the repository do not fit into memory."""

    title = "The models need more memory than there is"
    reason = "A server that exceeds its memory is killed with all of its models."
    bad = python_model(BASE, **{"1/weights.bin": "x" * 2048})
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield one finding, at the model with the largest files."""
        memory = model.machine.memory
        if not memory or model.folder is None or model.config is None:
            return
        sizes = {
            name: size for name, other in model.models.items() if (size := loaded_bytes(other))
        }
        total = sum(sizes.values())
        if total > memory and model.name == max(sizes, key=lambda name: (sizes[name], name)):
            listed = ", ".join(
                f"{name} {size_text(sizes[name])}"
                for name in sorted(sizes, key=lambda name: -sizes[name])[:3]
            )
            yield self.finding(
                model, "",
                f"the files of all models have {size_text(total)}, the server has "
                f"{size_text(memory)}; largest: {listed}",
                "Load models on demand (memory: lazy), or give the server more memory.",
                file=str(model.folder),
            )  # fmt: skip


def loaded_bytes(model: LintModel) -> int:
    """Return the size of the files of the versions that the server would load."""
    if model.folder is None:
        return 0
    total = 0
    for name in model.files:
        version = name.partition("/")[0]
        if version.isdigit() and int(version) in model.versions and not name.endswith("/"):
            try:
                total += (model.folder / name).stat().st_size
            except OSError:
                continue
    return total
