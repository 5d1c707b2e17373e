"""Rules for folders, file names and the text of a configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from tritonpy_checks import (
    Edit,
    Finding,
    Fix,
    Level,
    LintModel,
    Move,
    NewFolder,
    Problem,
    remove_field,
    rename_field,
)
from tritonpy_config.problem import Position
from tritonpy_lint.rules.server_rule import (
    GOOD,
    PYTHON_MODEL,
    TENSORS,
    ServerRule,
    edit_fix,
    python_model,
)

_PLACEHOLDER = re.compile(r"\$\{\w+\}")
_MOVE = re.compile(r"'([^']+)' is in the model's folder: .* as '[^/']+/([^']+)'")
_RENAME = re.compile(r"'([^']+)' does not have the expected name: rename it to '([^']+)'")
_FOLDER = re.compile(r"'([^']+)' is not a version folder")
_SUGGESTION = re.compile(r"did you mean '(\w+)'\?")
BASE = f'backend: "python"\n{TENSORS}'


class VersionFolder(ServerRule):
    """F001: no usable version folder."""

    title = "No version folder"
    reason = "The server loads the versions of a model from folders with positive numbers as names."
    remedy = "Create the folder '1' in the model's folder and put the model's file into it."
    bad: ClassVar[Mapping[str, str]] = {"config.pbtxt": BASE, "v1/model.py": PYTHON_MODEL}
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the fix: an empty folder for an ensemble, or the file moved to its place."""
        if model.folder is None:
            return "", None
        if model.given.HasField("ensemble_scheduling"):
            change = NewFolder(model.folder / "1")
            return "Create an empty folder '1': an ensemble has versions, too.", Fix(
                "create the folder '1'", (change,)
            )
        if moved := _MOVE.search(problem.text):
            change_file = Move(model.folder / moved[1], model.folder / moved[2])
            return "", Fix(f"move '{moved[1]}' to '{moved[2]}'", (change_file,), safe=False)
        if renamed := _FOLDER.search(problem.text):
            change_file = Move(model.folder / renamed[1], model.folder / "1")
            return "", Fix(f"rename '{renamed[1]}' to '1'", (change_file,), safe=False)
        return "", None


class ModelFileName(ServerRule):
    """F002: the model's file has another name than the server looks for."""

    title = "The model's file is missing or has another name"
    reason = "Each backend looks for one file name, unless default_model_filename names another."
    remedy = "Rename the file, or set default_model_filename in config.pbtxt to its name."
    bad: ClassVar[Mapping[str, str]] = {"config.pbtxt": BASE, "1/my_model.py": PYTHON_MODEL}
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the fix: set the name of the only file that could be meant."""
        if renamed := _RENAME.search(problem.text):
            if model.folder is None:
                return "", None
            source, target = (model.folder / name for name in renamed.groups())
            return "", Fix(f"rename '{renamed[1]}' to '{renamed[2]}'", (Move(source, target),))
        config, path = model.config, model.config_path
        if config is None or path is None or model.given.default_model_filename:
            return "", None
        suffix = config.default_model_filename.rpartition(".")[2]
        present = {
            name.partition("/")[2]
            for name in model.files
            if name.partition("/")[0].isdigit() and name.endswith(f".{suffix}")
        }
        if len(present) != 1:
            return "", None
        (name,) = present
        text = f'default_model_filename: "{name}"'
        return f"Add {text} to config.pbtxt.", edit_fix(
            f"add {text}", Edit(path, 0, 0, f"{text}\n")
        )


class NameDiffers(ServerRule):
    """F003: `name` differs from the folder."""

    title = "name differs from the model's folder"
    reason = "The folder's name is the model's name; the field must repeat it or be absent."
    remedy = "Delete the field 'name', or rename the folder."
    bad = python_model(f'name: "other"\n{BASE}')
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the fix: the field is deleted."""
        return "", _removal(model, problem, "delete the field 'name'")


class Placeholders(ServerRule):
    """F005: a template was not filled in."""

    title = "Placeholders of a template are left"
    reason = (
        "Templates such as those of TensorRT-LLM are filled in by a script before they are used."
    )
    bad = python_model(f"{BASE}max_batch_size: ${{triton_max_batch_size}}\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield one finding with the names of all placeholders."""
        names = sorted(set(_PLACEHOLDER.findall(without_comments(model.text))))
        if not names:
            return
        first = min(model.text.index(name) for name in names)
        before = model.text[:first]
        yield self.finding(
            model,
            "",
            f"the configuration is a template; not filled in: {', '.join(names)}",
            "Fill the template with its script, or replace each placeholder by a value.",
            line=before.count("\n") + 1,
            column=len(before) - before.rfind("\n"),
        )


def without_comments(text: str) -> str:
    """Return the text of a configuration with its comments removed."""
    return re.sub(r"#[^\n]*", "", text)


class Syntax(ServerRule):
    """F006: the text is not protobuf's text format."""

    title = "Syntax error"
    reason = "config.pbtxt is a message in protobuf's text format: 'name: value' or 'name { … }'."
    remedy = "Correct the text at this position."
    bad = python_model(f"{BASE}max_batch_size 8\n")
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the syntax errors; a template and JSON have one finding each."""
        if _PLACEHOLDER.search(without_comments(model.text)):
            return
        if model.text.lstrip().startswith("{"):
            yield self.finding(
                model,
                "",
                "the configuration is JSON, not protobuf's text format",
                "Write the fields without the outer braces and without quotes around their names.",
                line=1,
                column=1,
            )
            return
        yield from super().check(model)


class UnknownField(ServerRule):
    """F007: a field that does not exist."""

    title = "Unknown field"
    reason = "A misspelled field would silently have no effect, so the server rejects it."
    remedy = "Correct or delete the field; 'tritonpy explain' lists all fields."
    bad = python_model(f"{BASE}dynamic_baching {{ }}\n")
    good = GOOD

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return the fix: the field gets the closest name."""
        near, path = _SUGGESTION.search(problem.text), model.config_path
        if near is None or path is None or problem.line is None or problem.column is None:
            return "", None
        position = Position(problem.line, problem.column)
        edit = rename_field(path, model.text, position, near[1])
        return f"Write '{near[1]}'.", edit_fix(f"rename the field to '{near[1]}'", edit)


class WrongValue(ServerRule):
    """F008: a value of the wrong type, an unknown enum value, or a field that is set twice."""

    title = "Invalid value"
    reason = "Each field takes one type of value."
    remedy = "Correct the value; 'tritonpy explain FIELD' describes it."
    bad = python_model(f'{BASE}max_batch_size: "8"\n')
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield the problems, except those of placeholders."""
        if not _PLACEHOLDER.search(without_comments(model.text)):
            yield from super().check(model)


class OutsideFolder(ServerRule):
    """F010: a file name leads out of the model's folder."""

    title = "A file name leads out of the model's folder"
    reason = "A configuration may only name files of its own model."
    remedy = "Copy the file into the model's folder and name it relative to that folder."
    bad = python_model(f'{BASE}default_model_filename: "../../other/1/model.py"\n')
    good = GOOD


class NotAModel(ServerRule):
    """F011: a folder in a repository that is no model."""

    title = "The folder is not a model"
    reason = (
        "Every folder in a repository is loaded as a model, except those that start with a dot."
    )
    remedy = "Move the folder elsewhere, or add a configuration and a version folder."
    bad: ClassVar[Mapping[str, str]] = {"notes.txt": "to do"}
    good = GOOD


class BrokenModelFile(ServerRule):
    """F009: the backend cannot open the model's file, or it contradicts the configuration."""

    title = "The backend cannot read the model's file"
    reason = "The file is damaged, incomplete, or made for another framework or version."
    remedy = "Export the model again and copy all of its files."
    bad: ClassVar[Mapping[str, str]] = {
        "config.pbtxt": 'backend: "onnxruntime"\n',
        "1/model.onnx": "not an ONNX file",
    }
    good = GOOD


class LeadingZeros(ServerRule):
    """F012: folders with numeric names that are no versions."""

    level = Level.WARNING
    title = "A folder with a number is not a version"
    reason = "A version is a positive number without leading zeros; other folders are ignored."
    bad = python_model(BASE, **{"01/model.py": PYTHON_MODEL})
    good = GOOD

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding per folder."""
        folders = {name.partition("/")[0] for name in model.files if "/" in name}
        for name in sorted(folders):
            if name.isascii() and name.isdigit() and name.startswith("0"):
                yield self.finding(
                    model,
                    "",
                    f"the folder '{name}' is ignored: a version has no leading zeros",
                    f"Rename it to '{name.lstrip('0') or '1'}'.",
                    file=f"{model.folder or model.name}/{name}",
                )


class OtherProblem(ServerRule):
    """G001: whatever else the server rejects."""

    title = "The server rejects the configuration"
    reason = "The text is the server's own."
    remedy = "'tritonpy explain FIELD' describes the field."
    bad = python_model(f"{BASE}max_batch_size: -1\n")
    good = GOOD


def _removal(model: LintModel, problem: Problem, title: str) -> Fix | None:
    path, place = model.config_path, model.positions.get(problem.key)
    if path is None or place is None:
        return None
    return edit_fix(title, remove_field(path, model.text, place))
