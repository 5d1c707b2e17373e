from __future__ import annotations

import hmac

import pytest

from tritonpy.auth import ApiCategory, Restriction, check_restrictions
from tritonpy.auth.restriction import Restrictions
from tritonpy_config.server import InvalidServerConfig, decode_options

SECRET = Restriction((ApiCategory.HEALTH, ApiCategory.METADATA), "Admin-Key", "secret")


@pytest.mark.parametrize(
    ("headers", "missing"),
    [
        ([], "Admin-Key"),
        ([("admin-key", "secret")], None),
        ([("ADMIN-KEY", "secret")], None),
        ([("admin-key", "Secret")], "Admin-Key"),
        ([("admin-key", "")], "Admin-Key"),
        # the first value counts, as in Triton
        ([("admin-key", "secret"), ("admin-key", "other")], None),
        ([("admin-key", "other"), ("admin-key", "secret")], "Admin-Key"),
        ([("admin-key", "secret, secret")], "Admin-Key"),
        ([("admin-key", "\udcff")], "Admin-Key"),
        ([("admin-key2", "secret"), ("key", "secret")], "Admin-Key"),
    ],
)
def test_a_restricted_category_needs_its_header(headers, missing):
    assert Restrictions([SECRET]).missing(ApiCategory.METADATA, headers) == missing


def test_other_categories_are_free():
    assert Restrictions([SECRET]).missing(ApiCategory.INFERENCE, []) is None


def test_the_prefix_is_part_of_the_name():
    restrictions = Restrictions([SECRET], "prefix-")
    assert restrictions.missing(ApiCategory.HEALTH, [("admin-key", "secret")]) == "prefix-Admin-Key"
    assert restrictions.missing(ApiCategory.HEALTH, [("prefix-admin-key", "secret")]) is None


def test_values_are_compared_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr(
        hmac, "compare_digest", lambda one, other: compared.append((one, other)) or one == other
    )
    assert Restrictions([SECRET]).missing(ApiCategory.HEALTH, [("admin-key", "secret")]) is None
    assert compared == [(b"secret", b"secret")]


def test_a_category_is_restricted_once():
    twice = Restriction((ApiCategory.HEALTH,), "k", "v")
    check_restrictions([SECRET], "api")
    with pytest.raises(
        ValueError, match="restricted api 'health' can not be specified in multiple config groups"
    ):
        check_restrictions([SECRET, twice], "api")


@pytest.mark.parametrize(
    "raw",
    [
        {"apis": ["health"], "key": "k"},
        {"apis": [], "key": "k", "value": "v"},
        {"apis": ["helth"], "key": "k", "value": "v"},
        {"apis": ["health"], "key": "", "value": "v"},
        {"apis": ["health"], "key": "k", "value": ""},
    ],
)
def test_an_incomplete_restriction_is_an_error(raw):
    with pytest.raises(InvalidServerConfig):
        decode_options(Restriction, raw, "restricted_apis[0]")
