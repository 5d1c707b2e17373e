"""Error texts for unknown names, with suggestions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> str:
    """Return the error text for a name that is not in `valid`: the closest name, or all names."""
    names = list(valid)
    folded = {candidate.lower(): candidate for candidate in names}
    # an abbreviation such as FP32 for TYPE_FP32 is closer in meaning than in letters
    near = [candidate for candidate in names if candidate.lower().endswith(f"_{name.lower()}")]
    near += [folded[found] for found in difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.7)]
    if near:
        return f"unknown {kind} '{name}'; did you mean '{near[0]}'?"
    if not names:
        return f"unknown {kind} '{name}'; no name is valid here"
    return f"unknown {kind} '{name}'; valid here: {', '.join(names)}"
