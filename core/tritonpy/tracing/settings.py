"""Trace settings of the server and of models.

A model inherits settings from the server. The server inherits those that it was started with.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tritonpy.api.trace_settings import TraceChanges
from tritonpy.errors import InvalidArgument
from tritonpy.tracing.rule import TraceRule
from tritonpy.types.trace import TraceLevel

Fields = dict[str, int]
NO_CHANGES = TraceChanges()


class _Layer:
    """The settings of one model or of the server, and the resulting rule."""

    def __init__(self, given: Fields, rule: TraceRule) -> None:
        self.given = given
        self.rule = rule


class TraceRules:
    """The rules of the server and of models. Not thread-safe."""

    def __init__(self, start: TraceRule) -> None:
        self._start = _fields(start)
        self._missing_setting = start.missing_setting
        self._server = _Layer({}, start)
        self._models: dict[str, _Layer] = {}

    def all(self) -> list[TraceRule]:
        """Return the current rules."""
        return [self._server.rule, *(layer.rule for layer in self._models.values())]

    def find(self, model: str) -> TraceRule:
        """Return the rule of a model, or of the server for ""."""
        return self._models.get(model, self._server).rule

    def change(self, model: str, changes: TraceChanges) -> None:
        """Set or clear settings of a model, or of the server and the models that inherit them.

        Raises InvalidArgument with Triton's text for settings that enable tracing but cannot trace.
        """
        self._change(model, changes)
        if not model:
            for name in list(self._models):
                self._change(name, NO_CHANGES)

    def _change(self, model: str, changes: TraceChanges) -> None:
        current = self._models.get(model) if model else self._server
        given = _changed({} if current is None else _with_remaining_count(current), changes)
        if model and not given:
            self._models.pop(model, None)
            return
        wider = _fields(self._server.rule) if model else self._start
        rule = self._rule(wider | given)
        if rule.level and rule.problem:
            raise InvalidArgument(f"Attempting to set invalid trace setting :{rule.problem}")
        if model:
            self._models[model] = _Layer(given, rule)
        else:
            self._server = _Layer(given, rule)

    def _rule(self, fields: Fields) -> TraceRule:
        return TraceRule(
            TraceLevel(fields["level"]), fields["rate"], fields["count"], fields["log_frequency"], self._missing_setting
        )


def level_from_names(names: list[str]) -> TraceLevel:
    """Return the level that combines `names` of TraceLevel."""
    return TraceLevel(sum({TraceLevel[name] for name in names}))


def level_names(level: TraceLevel) -> list[str]:
    """Return the names of a level, none for OFF."""
    return [each.name for each in (TraceLevel.TIMESTAMPS, TraceLevel.TENSORS) if level & each and each.name]


def _fields(rule: TraceRule) -> Fields:
    return {"level": rule.level, "rate": rule.rate, "count": rule.count, "log_frequency": rule.log_frequency}


def _with_remaining_count(layer: _Layer) -> Fields:
    return {**layer.given, "count": layer.rule.count} if "count" in layer.given else dict(layer.given)


def _changed(given: Fields, changes: TraceChanges) -> Fields:
    for name, value in msgspec.structs.asdict(changes).items():
        if value is None:
            given.pop(name, None)
        elif value is not UNSET:
            given[name] = level_from_names(value) if name == "level" else value
    return given
