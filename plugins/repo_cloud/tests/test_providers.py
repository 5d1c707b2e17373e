from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import Unavailable
from tritonpy_repo_cloud.location import parse_location
from tritonpy_repo_cloud.options import CloudOptions
from tritonpy_repo_cloud.providers import (
    azure_arguments,
    gs_arguments,
    merge_arguments,
    s3_arguments,
)

from .stores.token_issuer import TokenIssuer

OPTIONS = CloudOptions()


def s3(url, credential, options=OPTIONS):
    return s3_arguments(parse_location(url), credential, options)


def azure(credential, options=OPTIONS):
    return azure_arguments(parse_location("as://account/container"), credential, options)


def test_a_key_wins_over_a_profile():
    arguments = s3(
        "s3://b",
        {"key_id": "k", "secret_key": "s", "session_token": "t", "profile": "p", "region": "r"},
    )
    assert {key: arguments.get(key) for key in ("key", "secret", "token", "profile")} == {
        "key": "k",
        "secret": "s",
        "token": "t",
        "profile": None,
    }
    assert arguments["client_kwargs"] == {"region_name": "r"}


def test_half_a_key_is_none_and_the_library_looks_for_itself():
    assert {"key", "secret", "token", "profile"}.isdisjoint(
        s3("s3://b", {"key_id": "k", "session_token": "t"})
    )
    assert s3("s3://b", {"key_id": "k", "profile": "p"})["profile"] == "p"


@pytest.mark.parametrize(
    ("url", "endpoint", "found"),
    [
        ("s3://b", "", None),
        ("s3://https://h:1/b", "", "https://h:1"),
        ("s3://b", "http://e", "http://e"),
        ("s3://h:1/b", "http://e", "http://h:1"),
    ],
)
def test_another_server_uses_path_style_addresses(url, endpoint, found):
    arguments = s3(url, {}, CloudOptions(endpoint=endpoint))
    assert arguments["client_kwargs"].get("endpoint_url") == found
    assert ("s3" in arguments["config_kwargs"]) == (found is not None)


def test_a_missing_google_file_is_not_sent_as_a_token(tmp_path):
    with pytest.raises(Unavailable, match=r"Google account file .* does not exist"):
        gs_arguments(parse_location("gs://b"), {"path": str(tmp_path / "none.json")}, OPTIONS)


def test_google_gets_the_file_and_else_looks_for_itself(tmp_path):
    location = parse_location("gs://b")
    file = tmp_path / "account.json"
    file.touch()
    assert gs_arguments(location, {"path": str(file)}, OPTIONS)["token"] == str(file)
    assert gs_arguments(location, {}, OPTIONS)["token"] is None


def test_azure_s_account_is_that_of_the_credential_or_of_the_url():
    assert azure({})["account_name"] == "account"
    assert azure({"account_str": "other"})["account_name"] == "other"


def test_azure_without_a_credential_is_anonymous():
    assert azure({})["anon"] is True
    assert azure({"account_key": "k"})["account_key"] == "k"


def test_a_key_and_an_endpoint_of_azure_are_a_connection_string():
    options = CloudOptions(endpoint="http://h:1/account")
    assert azure({"account_key": "k"}, options)["connection_string"] == (
        "BlobEndpoint=http://h:1/account;AccountName=account;AccountKey=k"
    )
    assert azure({}, CloudOptions(endpoint="https://h:1"))["account_host"] == "h:1"


def test_an_unknown_auth_type_is_rejected():
    with pytest.raises(
        Unavailable, match="unknown auth_type 'kerberos' for Azure storage, use one of: key"
    ):
        azure({"auth_type": "kerberos"})


@pytest.mark.parametrize("client_id", ["", "11111111-2222-3333-4444-555555555555"])
def test_the_machine_identity_provides_a_token(monkeypatch, client_id):
    issuer = TokenIssuer(
        {
            "access_token": "issued",
            "expires_on": "4000000000",
            "resource": "r",
            "token_type": "Bearer",
        }
    )
    monkeypatch.setenv("IDENTITY_ENDPOINT", issuer.url)
    monkeypatch.setenv("IDENTITY_HEADER", "secret")

    async def token():
        fields = {"auth_type": "managed_identity", "client_id": client_id}
        credential = azure({key: value for key, value in fields.items() if value})["credential"]
        async with credential:
            return (await credential.get_token("https://storage.azure.com/.default")).token

    assert asyncio.run(token()) == "issued"
    assert (
        (f"client_id={client_id}" in issuer.requested[0])
        if client_id
        else ("client_id" not in issuer.requested[0])
    )
    issuer.end()


def test_the_librarys_default_chain_can_be_selected():
    credential = azure({"auth_type": "default"})["credential"]
    assert type(credential).__name__ == "DefaultAzureCredential"
    asyncio.run(credential.close())


VALUES = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner), max_leaves=5
)
MAPPINGS = st.dictionaries(st.sampled_from("abc"), VALUES)


@given(MAPPINGS, MAPPINGS)
def test_configured_arguments_take_precedence_and_are_merged(ours, theirs):
    result = merge_arguments(ours, theirs)
    assert set(result) == {*ours, *theirs}
    for key, value in theirs.items():
        if not isinstance(value, dict):
            assert result[key] == value
    for key in ours.keys() - theirs.keys():
        assert result[key] == ours[key]
