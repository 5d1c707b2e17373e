"""Names and prose use standard terms: no word of `vocabulary.toml` is part of an identifier, module name or sentence."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY = tomllib.loads((ROOT / "tests" / "vocabulary.toml").read_text(encoding="utf-8"))
FORBIDDEN = frozenset(word + ending for word in VOCABULARY["words"] for ending in ("", "s"))
PHRASES = re.compile(
    r"\b(" + "|".join(map(re.escape, VOCABULARY["phrases"])) + r")\b", re.IGNORECASE
)
EXCEPTIONS: dict[str, str] = VOCABULARY["exceptions"]
HISTORY = {"CHANGELOG.md"}  # names what was renamed
ITSELF = {"tests/test_vocabulary.py", "tests/vocabulary.toml"}


def tracked(*endings: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    names = [
        name
        for name in listed.split("\0")
        if name.endswith(endings) and name not in ITSELF | HISTORY
    ]
    return [path for name in names if (path := ROOT / name).is_file() and "_pb2" not in name]


def parts(name: str) -> set[str]:
    """Return the parts of a name in lower case: `HTTPServer_wakeUp2` has http, server, wake and up."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


@cache
def tokens(path: Path) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline))


def names_in(path: Path) -> dict[str, int]:
    """Return each identifier of a file and the line where it occurs first."""
    found: dict[str, int] = {}
    for token in tokens(path):
        if token.type == tokenize.NAME:
            found.setdefault(token.string, token.start[0])
    return found


def prose_of(path: Path) -> list[tuple[int, str]]:
    """Return the docstrings and comments of a Python file, or the lines of a page, with their line numbers."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return list(enumerate(text.splitlines(), 1))
    found = [
        (token.start[0], token.string) for token in tokens(path) if token.type == tokenize.COMMENT
    ]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, documented)
            and (docstring := ast.get_docstring(node, clean=False)) is not None
        ):
            start = node.body[0].lineno
            found += [(start + offset, line) for offset, line in enumerate(docstring.splitlines())]
    return found


def test_parts_of_names() -> None:
    assert parts("_HTTPServer_wakeUp2") == {"http", "server", "wake", "up"}
    assert parts("test_a_request_is_refused") == {"test", "a", "request", "is", "refused"}


def test_identifiers_contain_no_forbidden_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in tracked(".py", ".pyi")
        for name, line in names_in(path).items()
        if FORBIDDEN & parts(name) and name not in EXCEPTIONS
    ]
    assert found == []


def test_file_and_folder_names_contain_no_forbidden_word() -> None:
    names = {part for path in tracked("") for part in path.relative_to(ROOT).parts}
    assert (
        sorted(name for name in names if FORBIDDEN & parts(name) and name not in EXCEPTIONS) == []
    )


def test_sentences_contain_no_forbidden_phrase() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {match.group()}"
        for path in tracked(".py", ".md")
        for line, text in prose_of(path)
        for match in PHRASES.finditer(text)
    ]
    assert found == []


def test_errors_logs_and_help_contain_no_forbidden_phrase() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {match.group()}"
        for path in tracked(".py")
        if "tests" not in path.relative_to(ROOT).parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in PHRASES.finditer(node.value)
    ]
    assert found == []


def test_every_exception_is_used_and_names_its_source() -> None:
    used = {name for path in tracked(".py", ".pyi") for name in names_in(path)}
    used |= {part for path in tracked("") for part in path.relative_to(ROOT).parts}
    assert sorted(name for name in EXCEPTIONS if name not in used) == []
    assert sorted(name for name, source in EXCEPTIONS.items() if not source.strip()) == []


def test_no_two_unrelated_classes_share_a_name() -> None:
    places = defaultdict(set)
    for path in tracked(".py"):
        name = str(path.relative_to(ROOT))
        if "tests" not in path.parts and not name.startswith(("examples/", "bench/")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].add(name)
    shared = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {
        name: found
        for name, found in shared.items()
        if name not in VOCABULARY["shared_class_names"]
    } == {}
    assert sorted(name for name in VOCABULARY["shared_class_names"] if name not in shared) == []
