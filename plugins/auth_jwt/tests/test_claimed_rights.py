from __future__ import annotations

import pytest

from tritonpy.auth import Verb
from tritonpy_auth_jwt.claimed_rights import claimed_rights


@pytest.mark.parametrize(
    "claim",
    [
        {"infer": ["digits*", "other"], "read": "*"},
        "infer:digits* infer:other read:*",
        ["infer:digits*", "infer:other", "read:*", "openid", 7],
        {
            "infer": ["digits*", "other", 7, None, ""],
            "read": ["*"],
            "fly": ["*"],
            "manage": {},
            "admin": None,
        },
        "openid profile infer:digits* infer:other read:* admin: manage fly:*",
    ],
)
def test_both_forms_are_equivalent(claim):
    rights = claimed_rights(claim)
    request_count = {
        (verb, model): rights.allow(verb, model)
        for verb in Verb
        for model in ("digits2", "other", "third", "")
    }
    granted = {key for key, allowed in request_count.items() if allowed}
    assert granted == {(Verb.INFER, "digits2"), (Verb.INFER, "other")} | {
        (Verb.READ, model) for model in ("digits2", "other", "third", "")
    }


@pytest.mark.parametrize(
    "claim",
    [
        None,
        "",
        [],
        {},
        7,
        True,
        "admin",
        "ADMIN:*",
        {"infer": {"*": "*"}},
        [["infer:*"]],
        {"infer": True},
    ],
)
def test_another_form_grants_nothing(claim):
    assert not any(claimed_rights(claim).allow(verb, model) for verb in Verb for model in ("", "m"))


def test_a_pattern_may_have_colons():
    assert claimed_rights("infer:a:b").allow(Verb.INFER, "a:b")
