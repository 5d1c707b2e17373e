from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy.auth import Verb
from tritonpy_auth_api_keys.key import new_key
from tritonpy_auth_api_keys.key_file import KeyEntry, format_entry, parse_key_file

KEY = new_key()


def table(more="", identity=KEY.id, name="ci", digest=KEY.hash):
    return f'[keys.{identity}]\nname = "{name}"\nhash = "{digest}"\n{more}\n'


def test_a_key_and_its_rights():
    known = parse_key_file(
        table('infer = ["digits*"]\nread = ["*"]\nexpires = 2030-01-01T00:00:00Z')
    )[KEY.id]
    assert (known.hash, known.principal.name) == (KEY.hash, f"ci ({KEY.id})")
    assert known.principal.rights.allow(Verb.INFER, "digits2")
    assert not known.principal.rights.allow(Verb.MANAGE, "digits2")
    assert known.expires_s == datetime(2030, 1, 1, tzinfo=UTC).timestamp()


def test_a_key_without_rights_and_expiry():
    known = parse_key_file(table())[KEY.id]
    assert known.expires_s == math.inf
    assert not any(known.principal.rights.allow(verb, "m") for verb in Verb)


def test_an_empty_file_has_no_keys():
    assert parse_key_file("") == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[keys", "at end of document"),
        ("keyz = {}", "keyz"),
        (table('infre = ["*"]'), "infre"),
        (table('infer = "*"'), "infer"),
        (table('infer = [""]'), "infer"),
        (table("infer = [1]"), "infer"),
        (table("expires = 2030-01-01T00:00:00"), "time zone"),
        (table('expires = "later"'), "expires"),
        (table(digest="sha256:abc"), "hash"),
        (table(digest=KEY.hash.upper()), "hash"),
        (table(digest="md5:" + "0" * 64), "hash"),
        (table(name=""), "name"),
        (table(identity="short"), "'short' is not a key id"),
        (table(identity=KEY.id.upper() + "X"), "is not a key id"),
        (table() + table(), "line"),
        (f'[keys.{KEY.id}]\nname = "x"', "hash"),
    ],
)
def test_errors_name_the_position_and_no_hash(text, place):
    with pytest.raises(ValueError) as caught:
        parse_key_file(text)
    assert place in str(caught.value)
    assert KEY.hash.removeprefix("sha256:") not in str(caught.value)


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


moments = st.integers(10**9, 10**10).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@given(texts, st.lists(texts, max_size=3), st.none() | moments)
def test_a_formatted_entry_can_be_parsed(name, globs, expires):
    entry = KeyEntry(name, KEY.hash, infer=tuple(globs), admin=("*",), expires=expires)
    known = parse_key_file(format_entry(KEY.id, entry))[KEY.id]
    assert known.principal.name == f"{name} ({KEY.id})"
    assert all(
        known.principal.rights.allow(Verb.INFER, glob)
        for glob in globs
        if not set("[/") & set(glob)
    )
    assert known.principal.rights.allow(Verb.ADMIN, "m")
    assert known.expires_s == (math.inf if expires is None else expires.timestamp())
