"""A parser for server.yaml that records the position of each key.

Plain values are those of YAML 1.2. In YAML 1.2 only true and false are booleans, and 010 is ten.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tritonpy_config.problem import ConfigProblem, Position, Positions
from tritonpy_config.server.invalid_server_config import InvalidServerConfig
from tritonpy_types.errors import StartupError


class _Loader(yaml.SafeLoader):
    """A loader without YAML 1.1 resolvers, for which `off` is false and `1:30` is ninety."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012


_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
for _tag, _pattern, _first in (
    ("bool", re.compile("true|True|TRUE|false|False|FALSE"), "tTfF"),
    ("int", _INT, "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
    ("null", re.compile("~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("merge", re.compile("<<"), "<"),
):
    _whole = re.compile(f"(?:{_pattern.pattern})$")
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, list(_first))


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node))
    return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def read_server_yaml(file: Path) -> tuple[Any, Positions]:
    """Return the contents of `file` as plain data, and the position of each key by its path.

    Raises StartupError if it cannot be read, InvalidServerConfig with line and column if it is not
    YAML.
    """
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise StartupError(
            f"cannot read the server's configuration '{file}': {error.strerror}"
        ) from error
    except UnicodeDecodeError as error:
        raise StartupError(
            f"cannot read the server's configuration '{file}': byte {error.start} is not UTF-8"
        ) from error
    return parse_server_yaml(text, str(file))


def parse_server_yaml(text: str, source: str) -> tuple[Any, Positions]:
    """Return the contents of a text as plain data, and the position of each key by its path.

    Raises InvalidServerConfig as `read_server_yaml` does.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places = _Places()
        if node is not None:
            places.walk(node, "", ())
        if places.problems:
            raise InvalidServerConfig(places.problems, source)
        return (None if node is None else loader.construct_document(node)), places.positions
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        text = ", ".join(part for part in (error.context, error.problem) if part)
        raise InvalidServerConfig([ConfigProblem("", text, line, column)], source) from error
    except yaml.YAMLError as error:
        raise InvalidServerConfig([ConfigProblem("", str(error))], source) from error


class _Places:
    """Records the position of each key and the problems of values that are not plain data."""

    def __init__(self) -> None:
        self.positions = Positions()
        self.problems: list[ConfigProblem] = []
        self._seen: set[int] = set()

    def walk(self, node: yaml.Node, path: str, above: tuple[int, ...]) -> None:
        if id(node) in above:
            self._refuse(node, path, "this alias contains itself")
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        inside = (*above, id(node))
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path, inside)
        elif isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.positions[f"{path}[{index}]"] = _position(item)
                self.walk(item, f"{path}[{index}]", inside)

    def _mapping(self, node: yaml.MappingNode, path: str, inside: tuple[int, ...]) -> None:
        first: dict[str, Position] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, path, "a key must be a plain name")
                continue
            here = f"{path}.{key.value}" if path else str(key.value)
            if key.value in first:
                self._refuse(key, here, f"given twice, first in line {first[key.value].line}")
            first.setdefault(key.value, _position(key))
            self.positions[here] = _position(key)
            self.walk(value, here, inside)

    def _refuse(self, node: yaml.Node, path: str, text: str) -> None:
        self.problems.append(ConfigProblem(path, text, *_position(node)))


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)
