"""On which models an ensemble stands, and whether it can stand on them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tritonpy.config.qualified import qualified
from tritonpy_protos.model_config_pb2 import ModelConfig

LATEST = -1
_NO_VERSION = "its step gives no model_version: -1 is the newest one"


@dataclass(frozen=True, slots=True)
class Member:
    """What an ensemble finds of one of its models: the versions that serve, and else why there is none.

    `invalid` is what is wrong with a member that is an ensemble itself, `failure` why its load failed.
    """

    versions: Collection[int] = ()
    invalid: str = ""
    failure: str = ""


def is_ensemble(config: ModelConfig) -> bool:
    """Say whether a model consists of others."""
    return config.HasField("ensemble_scheduling")


def member_names(config: ModelConfig) -> list[str]:
    """Return the names of the models that the steps run, each once, in the order of the steps."""
    return list(dict.fromkeys(step.model_name for step in config.ensemble_scheduling.step))


def found_members(
    config: ModelConfig, namespace: str, known: Mapping[str, Collection[str]]
) -> dict[str, str]:  # fmt: skip
    """Return which model each name of a step stands for; a name that is missing is of no model, or of several.

    `known` has the qualified names of all models by their plain names. The ensemble's own namespace comes first.
    """
    found: dict[str, str] = {}
    for name in member_names(config):
        candidates = known.get(name, ())
        preferred = qualified(namespace, name)
        if preferred in candidates:
            found[name] = preferred
        elif len(candidates) == 1:
            (found[name],) = candidates
    return found


def refusal(key: str, config: ModelConfig, found: Mapping[str, str], members: Mapping[str, Member]) -> str:
    """Return why the ensemble `key` cannot serve now, in Triton's words; empty where nothing of its members stands against it.

    `found` is as `found_members` returns it, `members` what there is of each of those models.
    """
    missing = [name for name in member_names(config) if name not in found]
    if missing:
        return f"ensemble {key} contains models that are not available or ambiguous: {', '.join(missing)}"
    for name, member_key in found.items():
        needed = [step.model_version for step in config.ensemble_scheduling.step if step.model_name == name]
        text = _member_refusal(member_key, members[member_key], needed)
        if text:
            return f"ensemble '{key}' depends on '{member_key}' {text}"
    return ""


def _member_refusal(key: str, member: Member, needed: Iterable[int]) -> str:
    if member.invalid:
        return f"which is not valid. Model '{key}' failed with error: {member.invalid}"
    if not member.versions:
        text = "which has no loaded version."
        return f"{text} Model '{key}' loading failed with error: {member.failure}" if member.failure else text
    for version in needed:
        if version != LATEST and version not in member.versions:
            hint = "" if version else f" ({_NO_VERSION})"
            return f"whose required version {version} is not loaded.{hint}"
    return ""


def circle(start: str, needs: Callable[[str], Iterable[str]]) -> list[str]:
    """Return the way on which `start` stands on itself, each model on the one after it and the last on `start`; empty where it does not."""
    way, seen = [start], {start}
    todo = [iter(needs(start))]
    while todo:
        key = next(todo[-1], None)
        if key is None:
            todo.pop()
            way.pop()
        elif key == start:
            return way
        elif key not in seen:
            seen.add(key)
            way.append(key)
            todo.append(iter(needs(key)))
    return []


def circle_refusal(key: str, way: Sequence[str]) -> str:
    """Return Triton's text for the ensemble `key` of a circle.

    Triton walks the circle from its first name on and again from the model before that one, and what it finds last of an ensemble stands.
    """
    first = way.index(min(way))
    way = [*way[first:], *way[:first]]
    before = {name: way[index - 1] for index, name in enumerate(way)}
    start = way[0] if before[way[-1]] == key else way[-1]
    return f"circular dependency between ensembles: {start} -> ... -> {before[start]} -> {start}"
