"""The command `tritonpy explain`: fields, keys of server.yaml, lint codes and models."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tritonpy import Command
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy_checks import LintModel, LintRule
from tritonpy_config.model_fields import ModelField, all_fields, describe_field
from tritonpy_lint.linting import OWN_CODES, is_model, load_rules, read_model
from tritonpy_lint.model_explanation import (
    ModelExplanation,
    explain_model,
    shortened_sample,
    table,
)
from tritonpy_lint.server_keys import ServerKey, server_keys

UNKNOWN, USAGE = 1, 2
_CODE = re.compile(r"[A-Z]+[0-9]{3}")
_WIDTH = 100
NOTES = {
    "S004": (
        "A client forgets the batch dimension",
        (
            "A model with max_batch_size above 0 expects [rows, dims…]: for dims: [ 4 ] a row has "
            "the shape [1, 4]. 'tritonpy explain MODEL' prints the exact shapes."
        ),
    ),
    "D004": (
        "A Python model sees a list of requests",
        (
            "dynamic_batching passes several requests to one call of execute(requests). Each keeps "
            "its own arrays; concatenate them in the model to compute them together."
        ),
    ),
    "P002": (
        "The shared memory of a container is too small",
        (
            "Docker gives a container 64 MB in /dev/shm unless --shm-size is set. Triton's Python "
            "models fail with it. Those of tritonpy do not use it; tensors that clients pass in "
            "shared memory do. 'tritonpy doctor' shows its size."
        ),
    ),
}
"""Mistakes that lint cannot see in files, under codes of their own."""


class ExplainCommand(Command):
    """Explain a model, a field of config.pbtxt, a key of server.yaml, or a lint code.

        tritonpy explain                                     all topics
        tritonpy explain models/digits                       a model; 'digits' is enough here
        tritonpy explain dynamic_batching.priority_levels    a field of config.pbtxt
        tritonpy explain frontends.http.port                 a key of server.yaml
        tritonpy explain D002                                a code of tritonpy lint

    The exit status is 0, 1 for an unknown topic, and 2 for an invalid command line.
    """

    usage_status: ClassVar[int] = USAGE

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("topic", nargs="?", default="", metavar="TOPIC")
        parser.add_argument("--recursive", action="store_true", help="list all inner fields")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, arguments: argparse.Namespace) -> int:
        """Print the explanation and return the exit status."""
        try:
            data, lines = explain(arguments.topic, recursive=arguments.recursive)
        except (KeyError, ValueError) as error:
            print(f"error: {error.args[0]}", file=sys.stderr)
            return UNKNOWN
        print(
            json.dumps(data, indent=2, ensure_ascii=False) if arguments.json else "\n".join(lines)
        )
        return 0


def explain(topic: str, *, recursive: bool = False) -> tuple[Any, list[str]]:
    """Return the explanation of a topic as plain data and as lines of text.

    Raises KeyError for an unknown topic, with the closest one, and ValueError for a model whose
    configuration has errors.
    """
    manager = make_plugin_manager()
    if not topic:
        return _overview(manager, recursive)
    if _CODE.fullmatch(topic):
        return _code(topic, load_rules(manager))
    folder = Path(topic)
    if folder.is_file() and folder.suffix == ".pbtxt":
        folder = folder.parent
    if not folder.is_dir() and "/" not in topic:
        folder = Path("models") / topic
    if folder.is_dir() and is_model(folder):
        explanation = explain_model(_read(folder, manager))
        return dataclasses.asdict(explanation), list(_model_lines(explanation))
    plain = re.sub(r"\[[^\]]*\]", "", topic)
    keys = {key.path: key for key in server_keys(manager)}
    try:
        field = describe_field(topic)
    except KeyError as error:
        if plain not in keys:
            raise KeyError(_unknown(topic, keys, error)) from error
        return dataclasses.asdict(keys[plain]), list(_key_lines(keys[plain], keys))
    lines = list(_field_lines(field, recursive=recursive))
    if plain in keys:
        lines += ["", f"server.yaml has a key of this name, too: {keys[plain].text}"]
    return dataclasses.asdict(field), lines


def _unknown(topic: str, keys: Mapping[str, ServerKey], error: KeyError) -> str:
    known = [*keys, *(each.path for each in all_fields(recursive=True))]
    near = difflib.get_close_matches(topic, known, 1)
    if near:
        return f"nothing is known about '{topic}'; did you mean '{near[0]}'?"
    local = " (no model is in this folder)" if "/" in topic else ""
    return f"{error.args[0]}{local}; 'tritonpy explain' lists all topics"


def _overview(manager: PluginManager, recursive: bool) -> tuple[Any, list[str]]:
    fields = list(all_fields(recursive=recursive))
    keys = list(server_keys(manager))
    if not recursive:
        keys = [key for key in keys if "." not in key.path]
    rules = load_rules(manager)
    codes = {code: rule.title for code, rule in rules.items()}
    codes |= {code: title for code, (title, _) in {**OWN_CODES, **NOTES}.items()}
    lines = ["Fields of config.pbtxt:"]
    lines += table([(each.path, _first(each.meaning.text)) for each in fields])
    lines += ["", "Keys of server.yaml:"]
    lines += table([(key.path, _first(key.text)) for key in keys])
    lines += ["", "Codes of tritonpy lint:"]
    lines += table(sorted(codes.items()))
    lines += ["", "A topic may also be the folder of a model."]
    data = {
        "fields": [each.path for each in fields],
        "server_keys": [key.path for key in keys],
        "codes": dict(sorted(codes.items())),
    }
    return data, lines


def _first(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _code(code: str, rules: Mapping[str, LintRule]) -> tuple[Any, list[str]]:
    notes = {**OWN_CODES, **NOTES}
    if code in notes:
        title, reason = notes[code]
        data: dict[str, Any] = {"code": code, "title": title, "reason": reason}
        return data, [f"{code}: {title}", "", *textwrap.wrap(reason, _WIDTH)]
    if code not in rules:
        near = difflib.get_close_matches(code, [*rules, *notes], 1, 0.5)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise KeyError(f"no rule has the code '{code}'{hint}")
    rule = rules[code]
    lines = [f"{code}: {rule.title} ({rule.level.value})", "", *textwrap.wrap(rule.reason, _WIDTH)]
    for heading, files in (("With the mistake:", rule.bad), ("Without it:", rule.good)):
        lines += ["", heading]
        for name, content in files.items():
            lines += [f"  {name}", *(f"    {line}" for line in content.rstrip().split("\n"))]
    lines += ["", f"To ignore it in one place: # lint: ignore[{code}] why"]
    data = {"code": code, "title": rule.title, "level": rule.level.value, "reason": rule.reason}
    return {**data, "bad": dict(rule.bad), "good": dict(rule.good)}, lines


def _field_lines(field: ModelField, *, recursive: bool) -> Iterator[str]:
    yield f"{field.path}: {field.type_name}"
    yield ""
    yield from textwrap.wrap(field.meaning.text, _WIDTH)
    if field.choices:
        yield f"Values: {', '.join(field.choices)}"
    if field.meaning.default:
        yield f"Default: {field.meaning.default}"
    if field.meaning.example:
        yield f"Example: {field.meaning.example}"
    if field.meaning.see:
        yield f"See also: {', '.join(field.meaning.see)}"
    if field.children:
        yield ""
        yield "Fields:"
        prefix = f"{field.path}."
        inner = [
            each
            for each in all_fields(recursive=True)
            if each.path.startswith(prefix)
            and (recursive or "." not in each.path.removeprefix(prefix))
        ]
        yield from table(
            [
                (each.path.removeprefix(prefix), each.type_name, _first(each.meaning.text))
                for each in inner
            ]
        )


def _key_lines(key: ServerKey, keys: Mapping[str, ServerKey]) -> Iterator[str]:
    yield f"{key.path}: {key.type_name}"
    yield ""
    if key.text:
        yield from textwrap.wrap(key.text, _WIDTH)
    if key.default:
        yield f"Default: {key.default}"
    yield f"Read from server.yaml by {key.owner or 'the server'}."
    inner = [each for each in keys.values() if each.path.startswith(f"{key.path}.")]
    if inner:
        yield ""
        yield "Keys:"
        yield from table([(each.path, _first(each.text)) for each in inner])


def _read(folder: Path, manager: PluginManager) -> LintModel:
    model = read_model(folder.resolve(), manager)
    if model.config is None or not model.is_complete:
        raise ValueError(
            f"the configuration of '{model.folder}' has errors: run tritonpy lint '{model.folder}'"
        )
    return model


def _model_lines(model: ModelExplanation) -> Iterator[str]:
    versions = ", ".join(map(str, model.versions)) or "none"
    yield f"Model {model.name}: backend {model.backend}, serves version {versions}"
    for heading, tensors in (
        ("A request contains:", model.inputs),
        ("A response contains:", model.outputs),
    ):
        yield ""
        yield heading
        yield from table(
            [
                (
                    tensor.name,
                    tensor.datatype,
                    f"[{', '.join(tensor.shape)}]{' (optional)' if tensor.optional else ''}",
                )
                for tensor in tensors
            ]
        )
    yield ""
    yield f"POST /v2/models/{model.name}/infer"
    yield f"  {json.dumps(shortened_sample(model.sample), ensure_ascii=False)}"
    for heading, lines in (
        ("Batches:", model.batching),
        ("Instances:", model.instances),
        ("Refused requests:", model.refused),
    ):
        yield ""
        yield heading
        for line in lines:
            yield from textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
    yield ""
    yield "Settings and where they come from:"
    yield from table([(each.path, each.value, each.origin) for each in model.settings])
