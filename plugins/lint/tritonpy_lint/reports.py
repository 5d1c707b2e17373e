"""The output formats of lint: text for people, JSON, SARIF, GitHub annotations and JUnit."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from tritonpy import __version__
from tritonpy_checks import Edit, Finding, Level, LintRule
from tritonpy_lint.linting import OWN_CODES, LintResult

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold yellow", Level.ADVICE: "bold cyan"}
_SARIF_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.ADVICE: "note"}
_GITHUB_LEVELS = {Level.ERROR: "error", Level.WARNING: "warning", Level.ADVICE: "notice"}
_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def title_and_reason(code: str, rules: Mapping[str, LintRule]) -> tuple[str, str]:
    """Return title and reason of a rule, or of a finding that concerns no model."""
    if code in rules:
        return rules[code].title, rules[code].reason
    return OWN_CODES.get(code, (code, ""))


def print_text(result: LintResult) -> None:
    """Print each finding with its line of text, then a summary; colors only on a terminal."""
    from rich.console import Console  # needed only for a report
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    sources: dict[str, list[str]] = {}
    for finding in result.findings:
        console.print(_text(finding, result.rules, sources))
    console.print(Text(summary(result)))


def _text(finding: Finding, rules: Mapping[str, LintRule], sources: dict[str, list[str]]) -> Text:
    from rich.text import Text

    style = _STYLES[finding.level]
    text = Text()
    text.append(f"{finding.level.value}[{finding.code}]", style)
    text.append(f": {finding.message}\n", "bold")
    place = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
    if finding.line is not None and finding.column is not None:
        place += f":{finding.column}"
    number = "" if finding.line is None else str(finding.line)
    bar = " " * len(number)
    text.append(f"{bar}--> {place}\n", "dim")
    if finding.line is not None:
        if finding.file not in sources:
            sources[finding.file] = _lines(finding.file)
        lines = sources[finding.file]
        if finding.line <= len(lines):
            line = lines[finding.line - 1].replace("\t", " ")
            start = max(0, (finding.column or 1) - 1)
            text.append(f"{bar} |\n{number} | {line}\n{bar} | ")
            text.append(" " * start + "^" * _caret_length(line, start) + "\n", style)
    reason = title_and_reason(finding.code, rules)[1]
    if reason:
        text.append(f"{bar} = why:  {reason}\n")
    if finding.advice:
        text.append(f"{bar} = help: {finding.advice}\n")
    if finding.fix is not None:
        option = "--fix" if finding.fix.safe else "--fix --unsafe-fixes"
        text.append(f"{bar} = fix:  {finding.fix.title} ({option})\n", "green")
    return text


def _caret_length(line: str, start: int) -> int:
    length = 0
    while start + length < len(line) and (
        line[start + length].isalnum() or line[start + length] in "_.\"'"
    ):
        length += 1
    return max(1, length)


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError:
        return []


def summary(result: LintResult) -> str:
    """Return the last line of the output."""
    models = f"{len(result.models)} model{'s' if len(result.models) != 1 else ''}"
    if not result.findings:
        return f"No findings in {models}."
    parts = [
        f"{count} {name}{'s' if count != 1 and level is not Level.ADVICE else ''}"
        for level, name in zip(Level, ("error", "warning", "advice"), strict=True)
        if (count := result.count(level))
    ]
    safe = sum(each.fix is not None and each.fix.safe for each in result.findings)
    unsafe = sum(each.fix is not None and not each.fix.safe for each in result.findings)
    text = f"{', '.join(parts)} in {models}."
    if safe:
        text += f" --fix removes {safe}."
    if unsafe:
        text += f" --fix --unsafe-fixes removes {unsafe + safe}."
    example = result.findings[0].code
    return f"{text} 'tritonpy explain {example}' explains a code."


def as_json(result: LintResult) -> str:
    """Return one JSON object with the findings, the models and the counts."""
    return json.dumps(
        {
            "findings": [
                {
                    "code": each.code,
                    "level": each.level.value,
                    "model": each.model,
                    "file": each.file,
                    "line": each.line,
                    "column": each.column,
                    "key": each.key,
                    "message": each.message,
                    "reason": title_and_reason(each.code, result.rules)[1],
                    "advice": each.advice,
                    "fix": None
                    if each.fix is None
                    else {"title": each.fix.title, "safe": each.fix.safe},
                }
                for each in result.findings
            ],
            "models": [model.name for model in result.models],
            "counts": {level.value: result.count(level) for level in Level},
        },
        indent=2,
    )


def as_sarif(result: LintResult) -> str:
    """Return a SARIF 2.1.0 log, which code hosts show next to the lines."""
    codes = sorted({each.code for each in result.findings})
    described = [
        {
            "id": code,
            "shortDescription": {"text": title_and_reason(code, result.rules)[0]},
            "fullDescription": {"text": title_and_reason(code, result.rules)[1]},
        }
        for code in codes
    ]
    driver = {"name": "tritonpy lint", "version": __version__, "rules": described}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(each, codes) for each in result.findings],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(finding: Finding, codes: list[str]) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _relative(finding.file)}}
    if finding.line is not None:
        location["region"] = {"startLine": finding.line, "startColumn": finding.column or 1}
    found: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": codes.index(finding.code),
        "level": _SARIF_LEVELS[finding.level],
        "message": {"text": f"{finding.message}. {finding.advice}".strip()},
        "locations": [{"physicalLocation": location}],
    }
    edits = [] if finding.fix is None else finding.fix.changes
    if finding.fix is not None and edits and all(isinstance(edit, Edit) for edit in edits):
        replacements = [
            {
                "deletedRegion": {"charOffset": edit.start, "charLength": edit.end - edit.start},
                "insertedContent": {"text": edit.text},
            }
            for edit in edits
            if isinstance(edit, Edit)
        ]
        artifact = {"uri": _relative(finding.file)}
        changes = [{"artifactLocation": artifact, "replacements": replacements}]
        found["fixes"] = [{"description": {"text": finding.fix.title}, "artifactChanges": changes}]
    return found


def as_github(result: LintResult) -> str:
    """Return one workflow command of GitHub Actions per finding, then the summary."""
    lines = []
    for each in result.findings:
        title = _escaped(f"{each.code} {title_and_reason(each.code, result.rules)[0]}").replace(
            ",", "%2C"
        ).replace(":", "%3A")  # fmt: skip
        place = f"file={_relative(each.file)}"
        if each.line is not None:
            place += f",line={each.line},col={each.column or 1}"
        message = _escaped(f"{each.message}. {each.advice}".strip())
        lines.append(f"::{_GITHUB_LEVELS[each.level]} {place},title={title}::{message}")
    return "\n".join([*lines, summary(result)])


def as_junit(result: LintResult) -> str:
    """Return a JUnit report with one test case per model; errors are failures."""
    suite = ET.Element("testsuite", name="tritonpy lint", tests=str(len(result.models)))
    names = [model.name for model in result.models]
    others = [""] if any(not each.model for each in result.findings) else []
    for name in [*others, *names]:
        case = ET.SubElement(suite, "testcase", name=name or "server", classname="lint")
        own = [each for each in result.findings if each.model == name]
        errors = [each for each in own if each.level is Level.ERROR]
        for each in errors:
            title = title_and_reason(each.code, result.rules)[0]
            failure = ET.SubElement(case, "failure", type=each.code, message=title)
            failure.text = f"{each.file}:{each.line or 1}: {each.message}. {each.advice}"
        others_text = [f"{each.code}: {each.message}" for each in own if each not in errors]
        if others_text:
            ET.SubElement(case, "system-out").text = "\n".join(others_text)
    return ET.tostring(suite, encoding="unicode")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _relative(file: str) -> str:
    path = Path(file)
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()


FORMATS: Mapping[str, Callable[[LintResult], str]] = {
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
    "junit": as_junit,
}
