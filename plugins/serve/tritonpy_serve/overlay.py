"""Merging of command-line flags into the content of server.yaml.

It records which flag set each key, for error messages.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tritonpy import StartupError
from tritonpy_config.problem import ConfigProblem, Positions
from tritonpy_serve.flag import Flag, Status, number


class BadFlags(StartupError):
    """The command line is invalid. The text names each flag."""

    def __init__(self, problems: Iterable[str]) -> None:
        super().__init__("\n".join(problems))


@dataclass(slots=True)
class GivenFlags:
    """The parsed flags of a command line: their settings, notes and warnings."""

    settings: list[tuple[Flag, list[Any]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        """Return the names of flags that set something."""
        return {flag.name for flag, _ in self.settings}


def read_flags(flags: Sequence[Flag], given: Mapping[str, Sequence[str]]) -> GivenFlags:
    """Return the parsed flags of `given`, which maps flag names to their texts in order.

    Raises BadFlags with every problem.
    """
    result, problems = GivenFlags(), []
    for flag in flags:
        texts = given.get(flag.name)
        if texts is None:
            continue
        try:
            values = [flag.parse(text) for text in texts]
        except ValueError as error:
            problems.append(
                f'Bad option: "--{flag.name}".\n{error}{_expectation(flag, str(error))}'
            )
            continue
        if flag.status is Status.NO_EFFECT:
            result.notes.append(f"--{flag.name} has no effect: {flag.note}")
        else:
            if flag.revise is not None:
                values, warnings = flag.revise(values)
                result.warnings += [f"--{flag.name}: {warning}" for warning in warnings]
            result.settings.append((flag, values if flag.combine is None else flag.combine(values)))
    if problems:
        raise BadFlags(problems)
    return result


def _expectation(flag: Flag, problem: str) -> str:
    """Return a line with the expected value, if Triton's text has none."""
    if problem.startswith("invalid value for bool option"):
        return f"\n--{flag.name} takes true or false."
    if not problem.startswith("Invalid option value"):
        return ""
    if flag.name.endswith("-port"):
        return f"\n--{flag.name} takes the number of a port, such as 8000."
    return (
        f"\n--{flag.name} takes "
        f"{'a number, such as 0.5' if flag.parse is number else 'a whole number, such as 1'}."
    )


@dataclass(slots=True)
class Origins:
    """Where each key of the merged configuration comes from: a place in the file, or a flag."""

    positions: Positions = field(default_factory=Positions)
    flags: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def extend_list(self, path: str, text: str) -> list[str]:
        """Append `text` to the list that flags built at `path`, and return the list."""
        self.lists[path] = [*self.lists.get(path, []), text]
        return self.lists[path]

    def locate(self, problem: ConfigProblem) -> ConfigProblem:
        """Return `problem` with the flag instead of the key, or with line and column."""
        best = max(
            (path for path in self.flags if _below(problem.path, path)), key=len, default=None
        )
        if best is not None:
            return ConfigProblem(f"--{self.flags[best]}", problem.text)
        position = self.positions.nearest(problem.path)
        return replace(problem, line=position.line, column=position.column) if position else problem


def _below(path: str, ancestor: str) -> bool:
    # flags and files may use either character
    path, ancestor = path.replace("-", "_"), ancestor.replace("-", "_")
    return path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def overlay(raw: object, given: GivenFlags, origins: Origins) -> object:
    """Return a copy of `raw` with the flags applied.

    A flag overrides the file. A repeated flag replaces the whole list.
    """
    if not isinstance(raw, Mapping):
        if raw is not None:
            return raw  # not a mapping: decoding reports it
        raw = {}
    merged: dict[str, Any] = copy.deepcopy(dict(raw))
    done: dict[str, str] = {}
    # Shortest paths first: settings of a disabled frontend are ignored.
    for flag, values in sorted(
        given.settings, key=lambda each: each[0].path.count(".") + each[0].keyed
    ):
        if flag.keyed:
            for value in values:
                _set_keyed(merged, flag, value, origins)
        elif flag.repeated:
            already = (
                merged[flag.path.split(".")[-1]]
                if flag.path in done and "." not in flag.path
                else []
            )
            _set(merged, flag.path.split("."), [*already, *values], flag, origins)
        elif flag.path not in done:
            _set(merged, flag.path.split("."), values[-1], flag, origins)
        done[flag.path] = flag.name
    return merged


def _set_keyed(
    merged: dict[str, Any], flag: Flag, value: tuple[str, str, str], origins: Origins
) -> None:
    name, key, text = value
    path = [*flag.path.split("."), *filter(None, (name,)), key]  # names and keys may contain dots
    if not name and key in flag.other_paths:
        path = flag.other_paths[key].split(".")
    if flag.path == "backends" and not name:
        path = ["backend_defaults", key]
    if key in flag.lists:
        _set(merged, path, origins.extend_list(".".join(path), text), flag, origins)
    else:
        _set(merged, path, text, flag, origins)


def _set(
    merged: dict[str, Any], path: Sequence[str], value: Any, flag: Flag, origins: Origins
) -> None:
    *parents, last = path
    at = merged
    for parent in parents:
        key = _same_key(at, parent)
        if at.get(key) is False:
            return  # the frontend is disabled
        if at.get(key) is None or at.get(key) is True:
            at[key] = {}
        if not isinstance(at[key], dict):
            return  # decoding reports the error in the file
        at = at[key]
    key = _same_key(at, last)
    if value is True and isinstance(at.get(key), dict):
        return  # already enabled, with settings
    at[key] = value
    origins.flags[".".join([*parents, key])] = flag.name


def _same_key(mapping: Mapping[str, Any], key: str) -> str:
    """Return the existing spelling of `key` in the mapping, with `_` or `-`."""
    folded = key.replace("-", "_")
    return next(
        (name for name in mapping if isinstance(name, str) and name.replace("-", "_") == folded),
        key,
    )


def with_file_options(merged: object, raw: object, origins: Origins) -> object:
    """Return `merged`; a transport selected by a flag keeps its options from the file `raw`."""
    chosen = merged.get("transport") if isinstance(merged, dict) else None
    in_file = raw.get("transport") if isinstance(raw, dict) else None
    if (
        isinstance(merged, dict)
        and isinstance(chosen, str)
        and isinstance(in_file, dict)
        and chosen in in_file
    ):
        origins.flags.pop("transport", None)  # errors in the options are errors of the file
        return {**merged, "transport": {chosen: in_file[chosen]}}
    return merged
