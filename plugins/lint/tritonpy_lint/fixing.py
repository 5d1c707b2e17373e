"""Applies fixes to files, or shows them as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tritonpy_checks import Edit, Finding, Fix, Move, NewFolder
from tritonpy_checks.edits import apply_edits


@dataclass(slots=True)
class FixPlan:
    """The changes of several fixes that do not overlap."""

    texts: dict[Path, str] = field(default_factory=dict)
    """The new text of each changed file."""
    moves: list[Move | NewFolder] = field(default_factory=list)
    fixes: list[Fix] = field(default_factory=list)
    """The fixes that are part of the plan; others overlap and wait for the next pass."""


def plan_fixes(findings: Sequence[Finding], *, unsafe: bool) -> FixPlan:
    """Return the changes of all fixes that may be applied together, safe ones unless `unsafe`."""
    plan = FixPlan()
    edits: dict[Path, list[Edit]] = {}
    for finding in findings:
        fix = finding.fix
        if fix is None or not (fix.safe or unsafe) or fix in plan.fixes:
            continue
        own = [change for change in fix.changes if isinstance(change, Edit)]
        if any(_overlaps(edit, edits.get(edit.file, ())) for edit in own):
            continue
        moves = [change for change in fix.changes if not isinstance(change, Edit)]
        if any(isinstance(move, Move) and move.target.exists() for move in moves):
            continue
        for edit in own:
            edits.setdefault(edit.file, []).append(edit)
        plan.moves += moves
        plan.fixes.append(fix)
    for path, found in edits.items():
        plan.texts[path] = apply_edits(_read(path), found)
    return plan


def apply(plan: FixPlan) -> None:
    """Write the changed files and move the others."""
    for path, text in plan.texts.items():
        path.write_bytes(text.encode())  # keeps the line endings
    for change in plan.moves:
        if isinstance(change, NewFolder):
            change.path.mkdir(exist_ok=True)
        elif change.source.exists() and not change.target.exists():
            change.target.parent.mkdir(exist_ok=True)
            change.source.rename(change.target)


def diff(plan: FixPlan) -> Iterator[str]:
    """Yield the lines of a unified diff, with a line per moved file."""
    for path, text in plan.texts.items():
        yield from difflib.unified_diff(
            _read(path).splitlines(keepends=True),
            text.splitlines(keepends=True),
            str(path),
            str(path),
        )
    for change in plan.moves:
        if isinstance(change, NewFolder):
            yield f"new folder {change.path}\n"
        else:
            yield f"rename {change.source} -> {change.target}\n"


def _overlaps(edit: Edit, others: Sequence[Edit]) -> bool:
    return any(
        (edit.start < other.end and other.start < edit.end) or edit.start == other.start
        for other in others
    )


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8-sig")
