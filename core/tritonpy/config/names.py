"""What to say about a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, valid: Iterable[str]) -> str:
    """Return the text for a name that is none of `valid`: the nearest one, or all when none is near."""
    names = list(valid)
    folded = {candidate.lower(): candidate for candidate in names}
    # an abbreviation such as FP32 for TYPE_FP32 is nearer in meaning than in letters
    near = [candidate for candidate in names if candidate.lower().endswith(f"_{name.lower()}")]
    near += [folded[found] for found in difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.7)]
    if near:
        return f"unknown {kind} '{name}'; did you mean '{near[0]}'?"
    if not names:
        return f"unknown {kind} '{name}'; there is none to set here"
    return f"unknown {kind} '{name}'; valid here: {', '.join(names)}"
