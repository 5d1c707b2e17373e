from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Unavailable
from tritonpy_repo_cloud.credentials import FILE_VARIABLE, VARIABLES, credential_for, longest_prefix

FILE = {
    "s3": {
        "": {"key_id": "any", "secret_key": "s"},
        "s3://bucket": {
            "key_id": "bucket",
            "secret_key": "s",
            "region": "eu-central-1",
            "session_token": "",
            "other": 1,
        },
        "s3://bucket/deep": {"profile": "deep"},
    },
    "gs": {"gs://bucket": "/path/of/account.json"},
    "as": {"as://account": {"account_str": "a", "account_key": "k"}},
}


@pytest.fixture
def environment(tmp_path):
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(FILE))
    return {FILE_VARIABLE: str(file), "AWS_ACCESS_KEY_ID": "of the environment"}


@pytest.mark.parametrize("scheme", VARIABLES)
def test_each_field_has_its_variable(scheme):
    environment = {variable: f"value of {variable}" for variable in VARIABLES[scheme].values()}
    found = credential_for(scheme, f"{scheme}://x", environment)
    assert found == {field: f"value of {variable}" for field, variable in VARIABLES[scheme].items()}


def test_an_empty_variable_says_nothing():
    assert credential_for("s3", "s3://b", {"AWS_ACCESS_KEY_ID": ""}) == {}


def test_other_schemes_have_no_credentials(environment):
    assert credential_for("memory", "memory://x", environment) == {}


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("s3://elsewhere/m", {"key_id": "any", "secret_key": "s"}),
        ("s3://bucket/m", {"key_id": "bucket", "secret_key": "s", "region": "eu-central-1"}),
        ("s3://bucket/deep/m", {"profile": "deep"}),
        ("gs://bucket/m", {"path": "/path/of/account.json"}),
        ("as://account/c", {"account_str": "a", "account_key": "k"}),
    ],
)
def test_the_longest_prefix_in_the_file_counts_and_not_the_environment(environment, url, found):
    assert credential_for(url[:2], url, environment) == found


def test_a_url_without_a_credential_is_named(environment):
    with pytest.raises(Unavailable, match="Cannot match credential for path  gs://other/m"):
        credential_for("gs", "gs://other/m", environment)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is not valid JSON"),
        ("[]", "must be of the form"),
        ('{"s3": 1}', "must be of the form"),
        ('{"s3": {"": "text"}}', "must be an object with key_id"),
        ('{"s3": {"": {}}, "gs": {"": {}}}', ""),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, content, text):
    file = tmp_path / "credentials.json"
    file.write_text(content)
    if not text:
        assert credential_for("s3", "s3://b", {FILE_VARIABLE: str(file)}) == {}
        with pytest.raises(Unavailable, match="must be the path of a file"):
            credential_for("gs", "gs://b", {FILE_VARIABLE: str(file)})
        return
    with pytest.raises(Unavailable, match=text):
        credential_for("s3", "s3://b", {FILE_VARIABLE: str(file)})


def test_a_field_that_is_null_is_not_given(tmp_path):
    file = tmp_path / "credentials.json"
    file.write_text('{"s3": {"": {"key_id": "k", "secret_key": "s", "session_token": null}}}')
    assert credential_for("s3", "s3://b", {FILE_VARIABLE: str(file)}) == {
        "key_id": "k",
        "secret_key": "s",
    }


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(Unavailable, match="cannot be read: No such file"):
        credential_for("s3", "s3://b", {FILE_VARIABLE: str(tmp_path / "none")})


@given(st.sets(st.text("ab/", max_size=5)), st.text("ab/", max_size=8))
def test_no_other_prefix_is_longer(prefixes, url):
    found = longest_prefix(dict.fromkeys(prefixes), url)
    matching = [prefix for prefix in prefixes if url.startswith(prefix)]
    assert (found is None) == (not matching)
    assert found is None or (
        found in matching and all(len(other) <= len(found) for other in matching)
    )
