"""The settings that are searched, and candidates: one value for each of them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tritonpy_config.tuning import DEFAULT_SETTING, SearchDimension, Setting

JsonObject = Mapping[str, Any]
BATCH, INSTANCES, BATCHING, DELAY = (
    "max_batch_size",
    "instance_group.count",
    "dynamic_batching",
    "max_queue_delay_microseconds",
)
CORE = frozenset({BATCH, INSTANCES, BATCHING, DELAY})
"""Names of the dimensions of every model; all others are keys of `parameters`."""
_DELAYS = (0, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the search."""

    max_batch_size: int = 128
    max_instances: int = 8


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value for each searched setting of each model: (model, dimension, value) in order."""

    settings: tuple[tuple[str, str, Setting], ...]

    @property
    def key(self) -> str:
        """A text that is equal for equal candidates."""
        return json.dumps(self.settings)

    def of(self, model: str) -> dict[str, Setting]:
        """Return the settings of one model."""
        return {name: value for owner, name, value in self.settings if owner == model}

    def with_setting(self, model: str, name: str, value: Setting) -> Candidate:
        """Return this candidate with another value."""
        return normalized(
            {
                (owner, each): (value if (owner, each) == (model, name) else old)
                for owner, each, old in self.settings
            }
        )

    def describe(self) -> str:
        """Return the settings for a reader; model names are left out if there is only one."""
        models = dict.fromkeys(model for model, _, _ in self.settings)
        parts = []
        for model in models:
            text = _describe(self.of(model))
            parts.append(f"{model}: {text}" if len(models) > 1 else text)
        return "; ".join(parts) or "nothing to set"


def _describe(values: Mapping[str, Setting]) -> str:
    parts = []
    if BATCH in values:
        parts.append(f"batch {values[BATCH]}")
    if INSTANCES in values:
        parts.append(f"{values[INSTANCES]} instance{'s' if values[INSTANCES] != 1 else ''}")
    if BATCHING in values:
        delay = f", delay {values[DELAY]} us" if values.get(DELAY) else ""
        parts.append(f"dynamic batching{delay}" if values[BATCHING] else "no dynamic batching")
    parts += [f"{name} {value}" for name, value in values.items() if name not in CORE]
    return ", ".join(parts)


def normalized(values: Mapping[tuple[str, str], Setting]) -> Candidate:
    """Return a candidate; a queue delay without dynamic batching has no effect and becomes 0."""
    kept = dict(values)
    for model, name in values:
        if name == DELAY and not values.get((model, BATCHING), True):
            kept[model, name] = 0
    return Candidate(tuple((model, name, value) for (model, name), value in kept.items()))


@dataclass(frozen=True, slots=True)
class Space:
    """The dimensions of all searched models, and the present configuration."""

    dimensions: Mapping[tuple[str, str], tuple[Setting, ...]]
    present: Candidate
    configs: Mapping[str, JsonObject] = field(default_factory=dict)
    """The present configuration of each model, in the form of the HTTP protocol."""

    @property
    def models(self) -> tuple[str, ...]:
        """The names of the searched models."""
        return tuple(dict.fromkeys(model for model, _ in self.dimensions))

    def size(self) -> int:
        """Return the number of combinations."""
        count = 1
        for values in self.dimensions.values():
            count *= len(values)
        return count

    def candidates(self, most: int, seed: int) -> list[Candidate]:
        """Return all candidates, or a random sample of about `most`, without duplicates."""
        keys = list(self.dimensions)
        if self.size() <= most:
            every: Iterator[tuple[Setting, ...]] = itertools.product(*self.dimensions.values())
        else:
            rng = random.Random(seed)  # noqa: S311  not for security
            every = (
                tuple(rng.choice(values) for values in self.dimensions.values())
                for _ in range(most)
            )
        return list(
            dict.fromkeys(normalized(dict(zip(keys, values, strict=True))) for values in every)
        )

    def adjacent(self, candidate: Candidate) -> list[Candidate]:
        """Return the candidates that differ in one setting by one step."""
        found = []
        for model, name, value in candidate.settings:
            values = self.dimensions[model, name]
            at = values.index(value) if value in values else 0
            found += [
                candidate.with_setting(model, name, values[near])
                for near in (at - 1, at + 1)
                if 0 <= near < len(values)
            ]
        return [each for each in dict.fromkeys(found) if each != candidate]

    def config(self, model: str, candidate: Candidate) -> JsonObject:
        """Return the model's configuration with the candidate's settings."""
        return apply_settings(self.configs[model], candidate.of(model))

    def changes(self, candidate: Candidate) -> dict[str, dict[str, Setting]]:
        """Return the settings that differ from the present configuration, by model."""
        before = {(model, name): value for model, name, value in self.present.settings}
        found: dict[str, dict[str, Setting]] = {}
        for model, name, value in candidate.settings:
            if before[model, name] != value:
                found.setdefault(model, {})[name] = value
        return found


def make_space(
    configs: Mapping[str, JsonObject],
    offered: Mapping[str, Sequence[SearchDimension]],
    limits: Limits,
) -> Space:
    """Return the space of models with these configurations and dimensions of their backends.

    An ensemble has no settings of its own; its members are models of `configs`.
    """
    dimensions: dict[tuple[str, str], tuple[Setting, ...]] = {}
    present: dict[tuple[str, str], Setting] = {}
    least = max(
        (int(each.get("max_batch_size", 0)) for each in configs.values() if _is_ensemble(each)),
        default=1,
    )
    for model, config in configs.items():
        if _is_ensemble(config):
            continue
        for name, (values, value) in _own_dimensions(config, limits, least).items():
            dimensions[model, name], present[model, name] = values, value
        for each in offered.get(model, ()):
            given = config.get("parameters", {}).get(each.name, {}).get("string_value")
            value = next(
                (known for known in each.values if str(known) == given), given or DEFAULT_SETTING
            )
            dimensions[model, each.name] = _with_value(each.values, value)
            present[model, each.name] = value
    return Space(dimensions, normalized(present), configs)


def _is_ensemble(config: JsonObject) -> bool:
    return "ensemble_scheduling" in config


def _own_dimensions(
    config: JsonObject, limits: Limits, least: int
) -> dict[str, tuple[tuple[Setting, ...], Setting]]:
    found: dict[str, tuple[tuple[Setting, ...], Setting]] = {}
    batch = int(config.get("max_batch_size", 0))
    if batch > 0:
        powers = [1 << power for power in range(20) if least <= 1 << power <= limits.max_batch_size]
        found[BATCH] = (_with_value(tuple(powers), batch), batch)
        if "sequence_batching" not in config:
            dynamic = config.get("dynamic_batching")
            delay = int((dynamic or {}).get("max_queue_delay_microseconds", 0))
            found[BATCHING] = ((False, True), dynamic is not None)
            found[DELAY] = (_with_value(_DELAYS, delay), delay)
    groups = config.get("instance_group", ())
    if len(groups) == 1 and not groups[0].get("passive"):
        count = int(groups[0].get("count", 1))
        counts = tuple(range(1, limits.max_instances + 1))
        found[INSTANCES] = (_with_value(counts, count), count)
    return found


def _with_value(values: tuple[Setting, ...], value: Setting) -> tuple[Setting, ...]:
    if value in values:
        return values
    if any(isinstance(each, str) for each in (*values, value)):
        return (*values, value)
    return tuple(sorted([*values, value]))


def apply_settings(config: JsonObject, values: Mapping[str, Setting]) -> JsonObject:
    """Return a model configuration with other settings; everything else stays."""
    changed: dict[str, Any] = json.loads(json.dumps(config))
    if BATCH in values:
        changed["max_batch_size"] = values[BATCH]
    if INSTANCES in values:
        changed["instance_group"][0]["count"] = values[INSTANCES]
    if BATCHING in values:
        dynamic = changed.pop("dynamic_batching", {})
        if values[BATCHING]:
            dynamic["max_queue_delay_microseconds"] = values.get(DELAY, 0)
            dynamic["preferred_batch_size"] = [
                size
                for size in dynamic.get("preferred_batch_size", ())
                if int(size) <= int(changed["max_batch_size"])
            ]
            changed["dynamic_batching"] = dynamic
    for name, value in values.items():
        if name not in CORE:
            parameters = changed.setdefault("parameters", {})
            parameters.pop(name, None)
            if value != DEFAULT_SETTING:
                text = str(value).lower() if isinstance(value, bool) else str(value)
                parameters[name] = {"string_value": text}
    return changed
