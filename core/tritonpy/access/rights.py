"""Rights as data: for each verb, patterns of model names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import translate

from tritonpy.api.authenticator import Verb


class Rights:
    """What one caller may do. `*` and `?` in a pattern stand for any characters, the rest is taken as it is, upper and lower case too.

    What concerns the server and no single model (its metadata, its log settings, the index) is asked for with an empty model name, so that
    only a pattern such as `*` allows it. No verb includes another.
    """

    def __init__(self, patterns: Mapping[Verb, Sequence[str]]) -> None:
        self._allowed = {
            verb: re.compile("|".join(map(translate, globs))).match for verb, globs in patterns.items() if globs
        }

    def allow(self, verb: Verb, model: str) -> bool:
        """Say whether `verb` may be done to `model` (empty: the server).

        Nobody may do anything to a name with a slash: it would be a path. A namespace may have some (`models/a::digits`), and takes part in the match.
        """
        matches = self._allowed.get(verb)
        return matches is not None and "/" not in model.rpartition("::")[2] and matches(model) is not None
