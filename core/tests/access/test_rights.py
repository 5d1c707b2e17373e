from __future__ import annotations

import pytest

from tritonpy import Verb
from tritonpy.access.rights import Rights


@pytest.mark.parametrize(
    ("patterns", "model", "allowed"),
    [
        (["digits"], "digits", True),
        (["digits"], "digits2", False),
        (["digits"], "Digits", False),
        (["digits*"], "digits2", True),
        (["a", "b*"], "bee", True),
        (["?"], "é", True),
        (["café"], "cafe\u0301", False),  # looks the same but is another name
        (["*"], "", True),
        (["digits*"], "", False),
        (["*"], "a\nb", True),
        (["digits"], "digits\n", False),
        (["a.c"], "abc", False),
        (["../x"], "x", False),
        (["open*"], "open/../closed", False),
        (["*"], "a/b", False),
        (["*"], "models/a::digits", True),
        (["*::digits"], "models/a::digits", True),
        (["digits"], "models/a::digits", False),
        (["*"], "models/a::../digits", False),
        ([], "digits", False),
    ],
)
def test_patterns_cover_whole_names(patterns, model, allowed):
    assert Rights({Verb.INFER: patterns}).allow(Verb.INFER, model) is allowed


def test_no_verb_includes_another():
    for verb in Verb:
        rights = Rights({verb: ["*"]})
        assert [other for other in Verb if rights.allow(other, "m")] == [verb]
