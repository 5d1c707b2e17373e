"""Rights of a principal: patterns of model names for each verb."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate

from tritonpy.api.authenticator import Verb


class Rights:
    """The rights of one principal. In a pattern, `*` and `?` are wildcards; case matters.

    The server itself (its metadata, log settings, the index) has an empty model name, which only a
    pattern such as `*` matches. No verb includes another one.
    """

    def __init__(self, patterns: Mapping[Verb, Sequence[str]]) -> None:
        self._allowed = {
            verb: re.compile("|".join(map(translate, globs))).match for verb, globs in patterns.items() if globs
        }

    def allow(self, verb: Verb, model: str) -> bool:
        """Return whether `verb` is allowed for `model` (empty: the server).

        A name with a slash is never allowed, since it would be a path. A namespace may have slashes
        (`models/a::digits`) and is part of the match.
        """
        matches = self._allowed.get(verb)
        return matches is not None and "/" not in model.rpartition("::")[2] and matches(model) is not None
