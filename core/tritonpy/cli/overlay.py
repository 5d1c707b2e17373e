"""Flags over file: puts what the command line says into the content of server.yaml, and remembers which flag said it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritonpy.cli.flag import Flag, Status, number
from tritonpy.config.positions import Positions
from tritonpy.config.problem import ConfigProblem
from tritonpy.errors import StartupError


class BadFlags(StartupError):
    """The command line cannot be followed; the text names each flag."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(problems))


@dataclass(slots=True)
class GivenFlags:
    """The flags of one command line: what they set, and what to tell about the others."""

    settings: list[tuple[Flag, list[Any]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        """Return which flags set something."""
        return {flag.name for flag, _ in self.settings}


def read_flags(flags: Sequence[Flag], given: Mapping[str, Sequence[str]]) -> GivenFlags:
    """Return the meaning of `given`, flag name -> its texts in order. Raises BadFlags with every problem."""
    result, problems = GivenFlags(), []
    for flag in flags:
        texts = given.get(flag.name)
        if texts is None:
            continue
        try:
            values = [flag.parse(text) for text in texts]
        except ValueError as error:
            problems.append(f'Bad option: "--{flag.name}".\n{error}{_expectation(flag, str(error))}')
            continue
        if flag.status is Status.REFUSED and any(not _asks_for_nothing(flag, text) for text in texts):
            problems.append(f"--{flag.name} is refused: {flag.note}.")
        elif flag.status is Status.NO_EFFECT:
            result.notes.append(f"--{flag.name} has no effect: {flag.note}")
        elif flag.status is Status.IMPLEMENTED:
            if flag.revise is not None:
                values, warnings = flag.revise(values)
                result.warnings += [f"--{flag.name}: {warning}" for warning in warnings]
            result.settings.append((flag, values if flag.combine is None else flag.combine(values)))
    if problems:
        raise BadFlags(problems)
    return result


def _expectation(flag: Flag, problem: str) -> str:
    """Return a line that says what the flag takes, where Triton's text does not."""
    if problem.startswith("invalid value for bool option"):
        return f"\n--{flag.name} takes true or false."
    if not problem.startswith("Invalid option value"):
        return ""
    if flag.name.endswith("-port"):
        return f"\n--{flag.name} takes the number of a port, such as 8000."
    return f"\n--{flag.name} takes {'a number, such as 0.5' if flag.parse is number else 'a whole number, such as 1'}."


def _asks_for_nothing(flag: Flag, text: str) -> bool:
    return bool(flag.parse(text) == flag.parse(flag.default)) if flag.default else not text


@dataclass(slots=True)
class Origins:
    """Where each key of the merged configuration was written: a place in the file, or a flag."""

    positions: Positions = field(default_factory=Positions)
    flags: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def extended(self, path: str, text: str) -> list[str]:
        """Return what flags added to the list at `path` so far, `text` last."""
        self.lists[path] = [*self.lists.get(path, []), text]
        return self.lists[path]

    def locate(self, problem: ConfigProblem) -> ConfigProblem:
        """Return `problem` with the flag instead of the key, or with line and column."""
        best = max((path for path in self.flags if _below(problem.path, path)), key=len, default=None)
        if best is not None:
            return ConfigProblem(f"--{self.flags[best]}", problem.text)
        position = self.positions.nearest(problem.path)
        return replace(problem, line=position.line, column=position.column) if position else problem


def _below(path: str, ancestor: str) -> bool:
    path, ancestor = path.replace("-", "_"), ancestor.replace("-", "_")  # flags and files may write either
    return path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def overlay(raw: object, given: GivenFlags, origins: Origins) -> object:
    """Return a copy of `raw` with the flags in it; a flag wins over the file, a repeated one replaces its whole list."""
    if not isinstance(raw, Mapping):
        if raw is not None:
            return raw  # no mapping at all: decoding says so
        raw = {}
    merged: dict[str, Any] = copy.deepcopy(dict(raw))
    done: dict[str, str] = {}
    # the shortest paths first: whether a frontend is on decides what becomes of its settings
    for flag, values in sorted(given.settings, key=lambda each: each[0].path.count(".") + each[0].keyed):
        if flag.keyed:
            for value in values:
                _set_keyed(merged, flag, value, origins)
        elif flag.repeated:
            already = merged[flag.path.split(".")[-1]] if flag.path in done and "." not in flag.path else []
            _set(merged, flag.path.split("."), [*already, *values], flag, origins)
        elif flag.path not in done:
            _set(merged, flag.path.split("."), values[-1], flag, origins)
        done[flag.path] = flag.name
    return merged


def _set_keyed(merged: dict[str, Any], flag: Flag, value: tuple[str, str, str], origins: Origins) -> None:
    name, key, text = value
    path = [*flag.path.split("."), *filter(None, (name,)), key]  # names and keys may have dots of their own
    if not name and key in flag.elsewhere:
        path = flag.elsewhere[key].split(".")
    if flag.path == "backends" and not name:
        path = ["backend_defaults", key]
    if key in flag.lists:
        _set(merged, path, origins.extended(".".join(path), text), flag, origins)
    else:
        _set(merged, path, text, flag, origins)


def _set(merged: dict[str, Any], path: Sequence[str], value: Any, flag: Flag, origins: Origins) -> None:
    *parents, last = path
    at = merged
    for parent in parents:
        key = _same_key(at, parent)
        if at.get(key) is False:
            return  # the frontend is off: nothing is left to set
        if at.get(key) is None or at.get(key) is True:
            at[key] = {}
        if not isinstance(at[key], dict):
            return  # decoding names what is wrong in the file
        at = at[key]
    key = _same_key(at, last)
    if value is True and isinstance(at.get(key), dict):
        return  # already on, with settings
    at[key] = value
    origins.flags[".".join([*parents, key])] = flag.name


def _same_key(mapping: Mapping[str, Any], key: str) -> str:
    """Return the spelling of `key` that the mapping has already, with `_` or `-`."""
    folded = key.replace("-", "_")
    return next((name for name in mapping if isinstance(name, str) and name.replace("-", "_") == folded), key)


def with_written_options(merged: object, raw: object, origins: Origins) -> object:
    """Return the merged configuration; a transport that a flag names keeps its options from the file `raw`."""
    chosen = merged.get("transport") if isinstance(merged, dict) else None
    written = raw.get("transport") if isinstance(raw, dict) else None
    if isinstance(merged, dict) and isinstance(chosen, str) and isinstance(written, dict) and chosen in written:
        origins.flags.pop("transport", None)  # what is wrong with them is in the file
        return {**merged, "transport": {chosen: written[chosen]}}
    return merged
