"""What a load of local repositories would change in a running server."""

from __future__ import annotations

import enum
import json
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonpy import StartupError
from tritonpy_checks import LintModel
from tritonpy_config.dependencies import is_ensemble, member_names
from tritonpy_config.model_json import read_config_json
from tritonpy_config.normalization import instance_specs, without_instances
from tritonpy_lint.model_explanation import leaves
from tritonpy_protos.model_config_pb2 import ModelConfig

TIMEOUT_S = 10.0
# The server writes this default for ensembles.
_UNSET = ("model_transaction_policy", "{ }")
_HIDDEN = ("name", "instance_group", "version_policy")


class Action(enum.Enum):
    """What the load of one model would do."""

    ADD = "add"
    CHANGE = "change"
    UPDATE = "update in place"
    """Only instances or served versions change: no version is loaded again."""
    REMOVE = "remove"
    NONE = "none"


@dataclass(slots=True)
class ModelChange:
    """The change of one model: what would happen, and a line per difference."""

    name: str
    action: Action
    details: list[str] = field(default_factory=list)
    dependents: list[str] = field(default_factory=list)
    """Ensembles that would be rebuilt with it."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model in the server: its ready versions and its configuration."""

    versions: frozenset[int]
    config: ModelConfig


class ServerReader:
    """Reads index and configurations over HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = (url if "://" in url else f"http://{url}").rstrip("/")
        self._headers = dict(headers)

    def models(self) -> dict[str, ServedModel]:
        """Return the models that are ready. Raises StartupError if the server cannot be asked."""
        versions: dict[str, set[int]] = {}
        for entry in self._call("/v2/repository/index", b"{}"):
            if entry.get("state") == "READY":
                versions.setdefault(entry["name"], set()).add(int(entry.get("version") or 1))
        return {
            name: ServedModel(frozenset(found), self._config(name))
            for name, found in sorted(versions.items())
        }

    def _config(self, name: str) -> ModelConfig:
        text = json.dumps(self._call(f"/v2/models/{name}/config"))
        return read_config_json(text).config

    def _call(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(f"{self._url}{path}", body, self._headers)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
                return json.load(response)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise StartupError(f"{self._url}{path}: {error.code} {text}") from error
        except (OSError, ValueError) as error:
            raise StartupError(f"{self._url} cannot be asked: {error}") from error


def compare(local: Mapping[str, LintModel], served: Mapping[str, ServedModel]) -> list[ModelChange]:
    """Return the change of each model by name, those without a change included.

    A local model with errors changes nothing: its load would fail.
    """
    changes = []
    for name in sorted({*local, *served}):
        model, current = local.get(name), served.get(name)
        if model is None:
            changes.append(ModelChange(name, Action.REMOVE, ["not in the repository"]))
        elif model.config is None or not model.loads:
            text = f"its load would fail: tritonpy lint {model.folder}"
            changes.append(ModelChange(name, Action.NONE, [text]))
        elif current is None:
            changes.append(ModelChange(name, Action.ADD, list(_added(model, model.config))))
        else:
            changes.append(_changed(name, model, model.config, current))
    names = {each.name for each in changes if each.action in {Action.CHANGE, Action.REMOVE}}
    for change in changes:
        if change.name in names:
            change.dependents = dependents(change.name, served)
    return changes


def dependents(name: str, served: Mapping[str, ServedModel]) -> list[str]:
    """Return the ensembles in the server that run a model, directly or through others."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        member = waiting.pop()
        for other, model in served.items():
            uses = is_ensemble(model.config) and member in member_names(model.config)
            if uses and other not in found:
                found.append(other)
                waiting.append(other)
    return sorted(found)


def _added(model: LintModel, config: ModelConfig) -> Iterator[str]:
    yield f"backend {config.backend or config.platform}"
    yield f"versions {_numbers(model.versions)}"
    if not is_ensemble(config):
        yield f"instances {len(instance_specs(config))}"


def _changed(name: str, model: LintModel, config: ModelConfig, current: ServedModel) -> ModelChange:
    details = list(_differences(current.config, config))
    reloads = bool(details)
    before, after = (
        0 if is_ensemble(each) else len(instance_specs(each)) for each in (current.config, config)
    )
    if before != after:
        details.append(f"instances {before} -> {after}")
    added = set(model.versions) - current.versions
    removed = current.versions - set(model.versions)
    if added:
        details.append(f"+ versions {_numbers(added)}")
    if removed:
        details.append(f"- versions {_numbers(removed)}")
    if reloads:
        return ModelChange(name, Action.CHANGE, details)
    return ModelChange(name, Action.UPDATE if details else Action.NONE, details)


def _differences(before: ModelConfig, after: ModelConfig) -> Iterator[str]:
    """Yield a line per value that differs, except those of instances and version policy."""
    old, new = (
        {
            path: value
            for path, value in leaves(without_instances(each), "")
            if (path, value) != _UNSET
        }
        for each in (before, after)
    )
    for path in [*new, *(path for path in old if path not in new)]:
        if path.partition(".")[0].partition("[")[0] in _HIDDEN or old.get(path) == new.get(path):
            continue
        if path not in old:
            yield f"+ {path}: {new[path]}"
        elif path not in new:
            yield f"- {path}: {old[path]}"
        else:
            yield f"~ {path}: {old[path]} -> {new[path]}"


def _numbers(versions: Collection[int]) -> str:
    return ", ".join(map(str, sorted(versions))) or "none"


def summary(changes: Sequence[ModelChange]) -> str:
    """Return the last line: the number of models by what would happen to them."""
    counts = {action: sum(each.action is action for each in changes) for action in Action}
    return (
        f"{counts[Action.ADD]} to add, {counts[Action.CHANGE]} to change, "
        f"{counts[Action.UPDATE]} to update in place, {counts[Action.REMOVE]} to remove, "
        f"{counts[Action.NONE]} without a change."
    )
