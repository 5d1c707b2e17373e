"""Credentials: servers that check them, and token issuers emulated by the test."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tritonpy import Unavailable
from tritonpy_repo_cloud.credentials import FILE_VARIABLE, VARIABLES
from tritonpy_repo_cloud.store_errors import FailureKind, StoreError

from .stores.azure import ACCOUNT, KEY
from .stores.token_issuer import TokenIssuer

MODELS = {"m": {"1/model.onnx": b"content"}}
RIGHT = {
    "s3rver": {"key_id": "S3RVER", "secret_key": "S3RVER", "region": "us-east-1"},
    "azurite": {"account_str": ACCOUNT, "account_key": KEY},
}
WRONG = {
    "s3rver": {"key_id": "OLD", "secret_key": "S3RVER", "region": "us-east-1"},
    "azurite": {"account_str": ACCOUNT, "account_key": "d3Jvbmc="},
}


@pytest.fixture
def issuer():
    started = []

    def start(answer):
        started.append(TokenIssuer(answer))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def without_variables(monkeypatch):
    """`without_variables()`: remove the credentials that Triton reads from the environment."""

    def clear():
        for variables in VARIABLES.values():
            for name in variables.values():
                monkeypatch.delenv(name, raising=False)

    return clear


@pytest.fixture
def credential_file(tmp_path, monkeypatch):
    """`credential_file(place, credential)`: write a credential file and set its variable."""
    file = tmp_path / "credentials.json"
    monkeypatch.setenv(FILE_VARIABLE, str(file))

    def write(place, credential):
        scheme = place.server.scheme
        file.write_text(json.dumps({scheme: {f"{scheme}://": {}, place.url(): credential}}))

    return write


def names(place, **options):
    repository = place.repository(settle_s=0, **options)
    try:
        return list(repository.scan())
    finally:
        repository.close()


@pytest.mark.parametrize("name", RIGHT)
def test_the_credential_file_is_sufficient(place_in, without_variables, credential_file, name):
    place = place_in(name)
    place.fill(MODELS)
    without_variables()
    credential_file(place, RIGHT[name])
    assert names(place) == ["m"]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_credentials_fail_immediately(place_in, credential_file, name):
    place = place_in(name)
    credential_file(place, WRONG[name])
    with pytest.raises(StoreError, match=r"access is denied: .*; check its credentials") as failure:
        names(place, attempts=1000)
    assert failure.value.kind is FailureKind.DENIED


@pytest.mark.parametrize("name", RIGHT)
def test_credentials_that_changed_are_read_again_when_access_fails(place_in, credential_file, name):
    place = place_in(name)
    place.fill(MODELS)
    credential_file(place, WRONG[name])
    repository = place.repository(settle_s=0)
    with pytest.raises(StoreError):
        repository.scan()
    credential_file(place, RIGHT[name])
    listing = repository.find("m")
    assert (repository.localize(listing) / "1/model.onnx").read_bytes() == b"content"
    repository.close()


def test_a_missing_credential_file_is_named(place_in, monkeypatch, tmp_path):
    place = place_in("moto")
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(Unavailable, match=r"the credential file .* cannot be read: No such file"):
        names(place)


def test_a_session_token_is_sent(place_in, proxied, monkeypatch):
    place = place_in("moto")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "the token")
    proxy = proxied(place)
    repository = place.repository(proxy.port)
    repository.scan()
    assert proxy.requests[0].headers["x-amz-security-token"] == "the token"
    repository.close()


def test_a_profile_gives_access(place_in, without_variables, monkeypatch, tmp_path):
    place = place_in("s3rver")
    place.fill(MODELS)
    without_variables()
    file = tmp_path / "aws"
    file.write_text(
        "[serving]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\nregion = us-east-1\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_PROFILE", "serving")
    assert names(place) == ["m"]


def test_the_machine_role_gives_access_and_is_renewed_on_denial(
    place_in, without_variables, monkeypatch, issuer
):
    place = place_in("s3rver")
    place.fill(MODELS)
    without_variables()
    until = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    role = {"AccessKeyId": "OLD", "SecretAccessKey": "S3RVER", "Token": "t", "Expiration": until}
    issued = issuer(role)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", issued.url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    repository = place.repository(settle_s=0)
    with pytest.raises(StoreError, match="access is denied"):
        repository.scan()
    issued.answer = {**role, "AccessKeyId": "S3RVER"}
    assert repository.find("m") is not None
    assert len(issued.requested) >= 2
    repository.close()


@pytest.mark.parametrize("way", ["variable", "file"])
def test_a_service_account_gives_access(place_in, proxied, monkeypatch, tmp_path, issuer, way):
    place = place_in("gcs")
    place.fill(MODELS)
    issued = issuer({"access_token": "issued", "expires_in": 3600, "token_type": "Bearer"})
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = tmp_path / "account.json"
    fields = {
        "client_email": "a@b.c",
        "token_uri": issued.url,
        "private_key": key.decode(),
        "project_id": "p",
    }
    account.write_text(json.dumps({"type": "service_account", "private_key_id": "1", **fields}))
    if way == "variable":
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    else:
        file = tmp_path / "credentials.json"
        file.write_text(json.dumps({"gs": {"gs://": str(account)}}))
        monkeypatch.setenv(FILE_VARIABLE, str(file))
    proxy = proxied(place)
    repository = place.repository(proxy.port, settle_s=0, storage={})
    assert list(repository.scan()) == ["m"]
    assert proxy.requests[0].headers["authorization"] == "Bearer issued"
    assert issued.requested
    repository.close()


def test_requests_go_through_the_proxy_of_the_environment(place, proxied, monkeypatch):
    place.fill(MODELS)
    proxy = proxied(place)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
    repository = place.repository(settle_s=0)
    assert (repository.localize(repository.find("m")) / "1/model.onnx").read_bytes() == b"content"
    assert len(proxy.requests) >= 3
    assert all(
        each.path.startswith(f"http://127.0.0.1:{place.server.port}/") for each in proxy.requests
    )
    repository.close()


def test_content_encrypted_with_a_customer_key_has_no_checksum(place_in):
    place = place_in("moto")
    place.server.client.put_object(
        Bucket=place.bucket,
        Key="models/here/m/1/model.onnx",
        Body=b"content",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId="arn:aws:kms:us-east-1:123456789012:key/1",
    )
    place.put("m/config.pbtxt", b"x")
    repository = place.repository(settle_s=0)
    vouched = {
        file.path: repository._store.has_content_checksum(file)
        for file in repository._store.files("m")
    }
    assert vouched == {"m/1/model.onnx": False, "m/config.pbtxt": True}
    repository.close()
