"""Comments in a configuration that ignore findings.

`# lint: ignore[D001] reason` ignores a code in its own line, or in the next line if the comment
stands alone. `# lint: ignore-file[D001, S002] reason` ignores codes in the whole file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_COMMENT = re.compile(r"#\s*lint:\s*ignore(-file)?\[([^\]]*)\]")


@dataclass(slots=True)
class _Ignore:
    """One code of a comment: the line it covers, or None for the whole file."""

    code: str
    comment_line: int
    covered: int | None
    used: bool = False


@dataclass(slots=True)
class Suppressions:
    """The ignore comments of one file."""

    ignores: list[_Ignore] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Suppressions:
        """Return the comments in `text`."""
        lines = text.split("\n")
        found = cls()
        for number, line in enumerate(lines, 1):
            match = _COMMENT.search(line)
            if match is None:
                continue
            covered = number
            if not line[: match.start()].strip():
                following = (
                    other for other, each in enumerate(lines[number:], number + 1)
                    if each.strip() and not each.strip().startswith("#")
                )  # fmt: skip
                covered = next(following, number)
            for code in match[2].split(","):
                if code.strip():
                    place = None if match[1] else covered
                    found.ignores.append(_Ignore(code.strip(), number, place))
        return found

    def covers(self, code: str, line: int | None) -> bool:
        """Return whether a finding is ignored, and record that its comments are used."""
        matching = [
            each
            for each in self.ignores
            if code.startswith(each.code) and each.covered in {None, line}
        ]
        for each in matching:
            each.used = True
        return bool(matching)

    def unused(self) -> Iterator[tuple[int, str]]:
        """Yield line and code of each comment that ignored nothing."""
        for each in self.ignores:
            if not each.used:
                yield each.comment_line, each.code
