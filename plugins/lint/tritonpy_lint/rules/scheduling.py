"""Rules for batching, sequences, caches, ensembles and versions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from tritonpy_checks import (
    Edit,
    Finding,
    Fix,
    Level,
    LintModel,
    LintRule,
    Problem,
    remove_field,
    replace_value,
)
from tritonpy_config.problem import Position
from tritonpy_lint.rules.server_rule import GOOD, TENSORS, ServerRule, python_model

BASE = f'backend: "python"\nmax_batch_size: 8\n{TENSORS}'
_LONG_DELAY_US = 1_000_000
_SHORT_IDLE_US = 10_000
STEP = (
    'platform: "ensemble"\n{tensors}ensemble_scheduling {{ step {{ model_name: "{name}" '
    "model_version: -1 {maps} }} }}\n"
)


def ensemble(maps: str, name: str = "missing") -> dict[str, str]:
    """Return the files of an ensemble with one step."""
    text = STEP.format(tensors=TENSORS, name=name, maps=maps)
    return {"config.pbtxt": text, "1/": ""}


class NoBatching(LintRule):
    """D001: requests are never merged."""

    level = Level.ADVICE
    title = "Requests are never merged into batches"
    reason = (
        "max_batch_size alone lets a client send batches; the server merges requests only with "
        "dynamic_batching."
    )
    bad = python_model(BASE)
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding for a model that allows batches and has no batching."""
        config = model.config
        if config is None or config.max_batch_size <= 1 or not model.is_complete:
            return
        if config.WhichOneof("scheduling_choice") or config.model_transaction_policy.decoupled:
            return
        path, text = model.config_path, model.text
        fix = None
        if path is not None:
            start = "" if text.endswith("\n") or not text else "\n"
            edit = Edit(path, len(text), len(text), f"{start}dynamic_batching {{ }}\n")
            fix = Fix("add dynamic_batching { }", (edit,), safe=False)
        yield self.finding(
            model,
            "max_batch_size",
            f"max_batch_size is {config.max_batch_size}, but only requests that are batches "
            "already use it",
            "Add dynamic_batching { }; its queue delay is 0 unless you set one.",
            fix=fix,
        )


class PreferredSizes(ServerRule):
    """D002: preferred batch sizes, which rarely help."""

    level = Level.ADVICE
    title = "preferred_batch_size is rarely useful"
    reason = (
        "A batch waits for the next preferred size, so the smallest one decides. Without preferred "
        "sizes the batch grows to max_batch_size by itself."
    )
    bad = python_model(f"{BASE}dynamic_batching {{ preferred_batch_size: [ 3, 5 ] }}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield an error for sizes out of range, else the advice to remove the field."""
        invalid = [problem for problem in model.problems if problem.code == self.code]
        for problem in invalid:
            yield self.finding(
                model, problem.key, problem.text,
                f"Use sizes from 1 to max_batch_size ({model.given.max_batch_size}), or none.",
                level=Level.ERROR, line=problem.line, column=problem.column,
            )  # fmt: skip
        sizes = list(model.given.dynamic_batching.preferred_batch_size)
        if invalid or not sizes or sizes == [model.given.max_batch_size]:
            return
        key, path = "dynamic_batching.preferred_batch_size", model.config_path
        place = model.positions.get(key)
        fix = None
        if path is not None and place is not None:
            edit = remove_field(path, model.text, place)
            fix = Fix("delete preferred_batch_size", (edit,), safe=False)
        listed = ", ".join(map(str, sizes))
        yield self.finding(
            model, key, f"preferred_batch_size [ {listed} ] makes the server prefer {min(sizes)}",
            "Delete it, unless measurements show that the model is faster at exactly these sizes.",
            fix=fix,
        )  # fmt: skip


class QueueDelay(LintRule):
    """D003: a queue delay that is very long."""

    title = "The queue delay is very long"
    reason = "A request that is alone waits for the whole delay before it runs."
    bad = python_model(f"{BASE}dynamic_batching {{ max_queue_delay_microseconds: 5000000 }}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding for more than a second, or more than the queue's own timeout."""
        batching = model.given.dynamic_batching
        delay = batching.max_queue_delay_microseconds
        timeout = batching.default_queue_policy.default_timeout_microseconds
        key = "dynamic_batching.max_queue_delay_microseconds"
        if delay > _LONG_DELAY_US:
            yield self.finding(
                model, key, f"requests wait up to {delay / 1e6:g} s for others",
                "Usual values are 100 to 5000 microseconds.",
            )  # fmt: skip
        elif timeout and delay >= timeout:
            yield self.finding(
                model, key,
                f"the delay of {delay} us is not shorter than the timeout of {timeout} us: "
                "requests time out while they wait for a batch",
                "Shorten the delay, or lengthen default_timeout_microseconds.",
            )  # fmt: skip


class DynamicBatching(ServerRule):
    """D005: queue policies and priorities that contradict each other."""

    title = "dynamic_batching contradicts itself"
    reason = "Priorities need a default level, and ordered responses allow one level only."
    remedy = "'tritonpy explain dynamic_batching' lists the fields and their ranges."
    bad = python_model(f"{BASE}dynamic_batching {{ priority_levels: 2 }}\n")
    good = GOOD


class SequenceBatching(ServerRule):
    """Q001: sequence batching that is invalid, or forgets sequences quickly."""

    title = "sequence_batching is invalid or forgets sequences quickly"
    reason = (
        "Controls have one kind and a name each. A sequence that is idle for longer than "
        "max_sequence_idle_microseconds ends without a message."
    )
    remedy = "'tritonpy explain sequence_batching' lists the fields and their ranges."
    bad = python_model(f'{BASE}sequence_batching {{ control_input {{ name: "" }} }}\n')
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the server's problems and a warning for a very short idle time."""
        yield from super().check(model)
        idle = model.given.sequence_batching.max_sequence_idle_microseconds
        if 0 < idle < _SHORT_IDLE_US:
            yield self.finding(
                model, "sequence_batching.max_sequence_idle_microseconds",
                f"a sequence ends after {idle} us without a request",
                "Clients need milliseconds between requests: the default is 1000000.",
                level=Level.WARNING,
            )  # fmt: skip


class UnusableCache(ServerRule):
    """C001: a response cache where it cannot take effect."""

    title = "The response cache cannot be used"
    reason = "Responses of sequences and of decoupled models are not functions of one request."
    remedy = "Delete response_cache."
    bad = python_model(f"{BASE}response_cache {{ enable: true }}\nsequence_batching {{ }}\n")
    good = GOOD


class EnsembleGraph(ServerRule):
    """E001: tensors of an ensemble without producer or consumer."""

    title = "The graph of the ensemble is incomplete"
    reason = (
        "In input_map and output_map, key is a tensor of the member and value is its name in the "
        "ensemble. Each tensor of the ensemble has one producer and at least one consumer."
    )
    bad = ensemble('input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "other" }')
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the tensors that exist, and a hint if key and value are swapped."""
        produced, consumed = producers(model), consumers(model)
        lost = [name for name in consumed if name not in produced]
        unused = [name for name in produced if name not in consumed]
        parts = []
        if lost:
            parts.append(f"Without a producer: {', '.join(lost)}.")
        if unused:
            parts.append(f"Without a consumer: {', '.join(unused)}.")
        for name in lost:
            near = difflib.get_close_matches(name, unused, 1)
            if near:
                parts.append(f"Is '{name}' meant to be '{near[0]}'?")
        swapped = _swapped(model)
        if swapped:
            parts.append(f"Key and value look swapped in {swapped}.")
        return " ".join(parts) or "Map every tensor of the ensemble once.", None


def producers(model: LintModel) -> dict[str, str]:
    """Return the producer of each tensor of an ensemble: a step, or the request."""
    found = {tensor.name: "the request" for tensor in model.given.input}
    for index, step in enumerate(model.given.ensemble_scheduling.step):
        for name in step.output_map.values():
            found.setdefault(name, f"step {index} ({step.model_name})")
    return found


def consumers(model: LintModel) -> dict[str, str]:
    """Return a consumer of each tensor of an ensemble: a step, or the response."""
    found = {tensor.name: "the response" for tensor in model.given.output}
    for index, step in enumerate(model.given.ensemble_scheduling.step):
        for name in step.input_map.values():
            found.setdefault(name, f"step {index} ({step.model_name})")
    return found


def _swapped(model: LintModel) -> str:
    """Return the map whose values, but not whose keys, are tensors of the member."""
    for index, step in enumerate(model.given.ensemble_scheduling.step):
        member = model.models.get(step.model_name)
        if member is None or member.config is None:
            continue
        for kind, mapping in (("input", step.input_map), ("output", step.output_map)):
            names = {tensor.name for tensor in getattr(member.config, kind)}
            if names and not names & set(mapping) and names & set(mapping.values()):
                return f"{kind}_map of step {index}"
    return ""


class EnsembleTensors(ServerRule):
    """E002: shapes, types or batch sizes differ between steps."""

    title = "Steps of the ensemble do not fit together"
    reason = "Tensors pass between steps unchanged, so both sides must agree on type and shape."
    remedy = "Change one side, or add a step that converts the tensor."
    bad = ensemble(
        'input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }', "member"
    )
    good = GOOD


class MissingMember(ServerRule):
    """E003: a member does not exist, or ensembles depend on each other."""

    title = "A member of the ensemble does not exist"
    reason = "Every step runs a model of the same server."
    bad = ensemble('input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }')
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the closest name, and the fix that writes it."""
        match = re.search(r"the model '([^']*)', which does not exist", problem.text)
        if match is None:
            if "version" in problem.key:
                return "Write model_version: -1 for the newest version.", None
            return "Remove one of the steps.", None
        names = sorted(set(model.models) - {model.name})
        near = difflib.get_close_matches(match[1], names, 1)
        if not near:
            return f"Models of this repository: {', '.join(names) or 'none'}.", None
        path, place = model.config_path, model.positions.get(problem.key)
        if path is None or place is None:
            return f"Did you mean '{near[0]}'?", None
        edit = replace_value(path, model.text, Position(*place), f'"{near[0]}"')
        return f"Did you mean '{near[0]}'?", Fix(f"write '{near[0]}'", (edit,), safe=False)


class MemberFails(LintRule):
    """E004: a member of the ensemble has errors."""

    level = Level.ERROR
    title = "A member of the ensemble does not load"
    reason = "An ensemble serves only while all of its members do."
    bad = ensemble(
        'input_map { key: "IN" value: "IN" } output_map { key: "OUT" value: "OUT" }', "broken"
    )
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per member with errors."""
        for index, step in enumerate(model.given.ensemble_scheduling.step):
            member = model.models.get(step.model_name)
            if member is not None and member is not model and not member.loads:
                yield self.finding(
                    model,
                    f"ensemble_scheduling.step[{index}].model_name",
                    f"step {index} runs '{step.model_name}', which does not load",
                    f"Correct the errors of '{step.model_name}' first.",
                )


class Versions(ServerRule):
    """V001: the version policy names versions that do not exist."""

    title = "version_policy selects no version, or versions that do not exist"
    reason = "The server loads the versions that the policy selects from those that exist."
    remedy = "Add the version folder, or select an existing version."
    bad = python_model(f"{BASE}version_policy {{ specific {{ versions: [ 7 ] }} }}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield an error if no version is left, and a warning per missing version."""
        failed = list(super().check(model))
        yield from failed
        if failed or not model.versions:
            return
        for version in model.given.version_policy.specific.versions:
            if version not in model.versions:
                yield self.finding(
                    model, "version_policy", f"version {version} does not exist and is ignored",
                    f"Versions that will be loaded: {', '.join(map(str, model.versions))}.",
                    level=Level.WARNING,
                )  # fmt: skip
