"""The models that an ensemble depends on, and why it cannot serve. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tritonpy_config.model_fit import qualified_name
from tritonpy_protos.model_config_pb2 import ModelConfig

LATEST = -1
_NO_VERSION = "its step has no model_version: -1 is the newest one"


@dataclass(frozen=True, slots=True)
class MemberState:
    """The state of one member of an ensemble: its ready versions, or why it has none.

    `invalid_reason` is set for a member that is an invalid ensemble, `failure` for one whose load
    failed.
    """

    versions: Collection[int] = ()
    invalid_reason: str = ""
    failure: str = ""


def is_ensemble(config: ModelConfig) -> bool:
    """Return whether a model is an ensemble."""
    return config.HasField("ensemble_scheduling")


def member_names(config: ModelConfig) -> list[str]:
    """Return the names of the models that the steps run, once each, in the order of the steps."""
    return list(dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step))


def resolve_members(
    config: ModelConfig, namespace: str, known: Mapping[str, Collection[str]]
) -> dict[str, str]:  # fmt: skip
    """Return the qualified name of each member by its name in the steps.

    A name is missing in the result if no model has it, or several have it. `known` maps plain names
    to the qualified names of all models. A model in the ensemble's own namespace is preferred.
    """
    found: dict[str, str] = {}
    for name in member_names(config):
        candidates = known.get(name, ())
        preferred = qualified_name(namespace, name)
        if preferred in candidates:
            found[name] = preferred
        elif len(candidates) == 1:
            (found[name],) = candidates
    return found


def member_error(
    key: str, config: ModelConfig, found: Mapping[str, str], members: Mapping[str, MemberState]
) -> str:
    """Return why the ensemble `key` cannot serve now, in Triton's words, or an empty string.

    `found` is the result of `resolve_members`; `members` has the state of each of those models.
    """
    missing = [name for name in member_names(config) if name not in found]
    if missing:
        return (
            f"ensemble {key} contains models that are not available or ambiguous: "
            f"{', '.join(missing)}"
        )
    for name, member_key in found.items():
        needed = [
            step.model_version
            for step in config.ensemble_scheduling.step
            if step.model_name == name
        ]
        text = _one_member_error(member_key, members[member_key], needed)
        if text:
            return f"ensemble '{key}' depends on '{member_key}' {text}"
    return ""


def _one_member_error(key: str, member: MemberState, needed: Iterable[int]) -> str:
    if member.invalid_reason:
        return f"which is not valid. Model '{key}' failed with error: {member.invalid_reason}"
    if not member.versions:
        text = "which has no loaded version."
        return (
            f"{text} Model '{key}' loading failed with error: {member.failure}"
            if member.failure
            else text
        )
    for version in needed:
        if version != LATEST and version not in member.versions:
            hint = "" if version else f" ({_NO_VERSION})"
            return f"whose required version {version} is not loaded.{hint}"
    return ""


def find_cycle(start: str, members_of: Callable[[str], Iterable[str]]) -> list[str]:
    """Return the cycle from `start` back to itself, or an empty list.

    Each model of the cycle depends on the next one, and the last one on `start`.
    """
    cycle, seen = [start], {start}
    todo = [iter(members_of(start))]
    while todo:
        key = next(todo[-1], None)
        if key is None:
            todo.pop()
            cycle.pop()
        elif key == start:
            return cycle
        elif key not in seen:
            seen.add(key)
            cycle.append(key)
            todo.append(iter(members_of(key)))
    return []


def cycle_error(key: str, cycle: Sequence[str]) -> str:
    """Return Triton's error text for the ensemble `key` of a cycle.

    Triton follows the cycle twice: from its first name in the alphabet, and from the model before
    that one. If both yield a text for an ensemble, Triton reports the second.
    """
    first = cycle.index(min(cycle))
    cycle = [*cycle[first:], *cycle[:first]]
    before = {name: cycle[index - 1] for index, name in enumerate(cycle)}
    start = cycle[0] if before[cycle[-1]] == key else cycle[-1]
    return f"circular dependency between ensembles: {start} -> ... -> {before[start]} -> {start}"
