"""Rights in a token claim, in either of two forms.

An object with lists of patterns, {"infer": ["digits*"], "read": ["*"]}, or the words of an OAuth
scope, "infer:digits* read:*", as one string or a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tritonpy.auth import Rights, Verb

_VERBS = {verb.value: verb for verb in Verb}


def claimed_rights(claim: Any) -> Rights:
    """Return the rights that `claim` grants. Other content and other forms grant nothing."""
    patterns: dict[Verb, list[str]] = {}
    for word, glob in _pairs(claim):
        if word in _VERBS and isinstance(glob, str) and glob:
            patterns.setdefault(_VERBS[word], []).append(glob)
    return Rights(patterns)


def _pairs(claim: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(claim, dict):
        for word, globs in claim.items():
            for glob in globs if isinstance(globs, list) else (globs,):
                yield word, glob
    else:
        for text in _words(claim):
            word, _, glob = text.partition(":")
            yield word, glob


def _words(claim: Any) -> Iterable[str]:
    if isinstance(claim, str):
        return claim.split()
    return [word for word in claim if isinstance(word, str)] if isinstance(claim, list) else ()
