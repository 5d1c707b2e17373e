"""Authentication and authorization on whole servers: keys and tokens, both protocols, metrics port."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from cryptography.hazmat.primitives.asymmetric import rsa
from tritonclient.utils import InferenceServerException

from tests.conftest import Models, Serve, ServerProcess
from tritonpy_auth_api_keys.key import NewKey, new_key
from tritonpy_auth_api_keys.key_file import KeyEntry, format_entry

BODY = json.dumps(
    {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
).encode()
INFER = "/v2/models/{}/infer"
SIGNER = rsa.generate_private_key(65537, 2048)
STATUS = {"UNAUTHENTICATED": "401", "PERMISSION_DENIED": "403"}


@dataclass
class GuardedServer:
    """A server with three principals: one for two models, one for reading, one for everything."""

    served: ServerProcess
    keys: Path
    one: NewKey
    reader: NewKey
    root: NewKey

    def request(
        self, path: str, key: NewKey | None = None, body: bytes | None = None, **headers: str
    ) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.served.request(path, body, {**bearer(key), **named}).status

    def scrape(self, key: NewKey | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.served.ports["metrics"], timeout=60
        )
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers=bearer(key))
            response = connection.getresponse()
            return response.status, response.read().decode()

    def denied(self, reason: str, verb: str) -> int:
        found = re.search(
            rf'tritonpy_denied_requests{{reason="{reason}",verb="{verb}"}} (\d+)',
            self.scrape(self.root)[1],
        )
        assert found
        return int(found[1])


def bearer(key: NewKey | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.text}"} if key else {}


def token(**claims: Any) -> str:
    payload = {
        "sub": "service",
        "exp": time.time() + 600,
        "scope": "infer:open*",
        "aud": "tritonpy",
        **claims,
    }
    return jwt.encode(payload, SIGNER, "RS256", {"kid": "k"})


def key_file(*entries: tuple[NewKey, KeyEntry]) -> str:
    return "\n".join(format_entry(key.id, entry) for key, entry in entries)


@pytest.fixture(scope="module")
def guarded(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    folder = tmp_path_factory.mktemp("guarded")
    models = Models(folder / "models")
    for name in ("open_one", "open_two", "closed"):
        models.identity(name, "FP32", ["batch", 2])
    one, reader, root = new_key(), new_key(), new_key()
    rights = {"infer": ("*",), "read": ("*",), "manage": ("*",), "admin": ("*",)}
    keys = folder / "keys.toml"
    keys.write_text(
        key_file(
            (one, KeyEntry("one", one.hash, infer=("open_*",))),
            (reader, KeyEntry("reader", reader.hash, read=("*",))),
            (root, KeyEntry("root", root.hash, **rights)),
        )
    )
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(SIGNER.public_key()))
    (folder / "set.json").write_text(
        json.dumps({"keys": [{**jwk, "key_ops": ["verify"], "kid": "k"}]})
    )
    (folder / "server.yaml").write_text(
        """
repositories: [{url: ./models}]
control: {mode: explicit, load: ["*"]}
auth:
  api_keys: {file: keys.toml, interval_s: 0.05}
  jwt: {algorithms: [RS256], jwks-file: set.json, audience: tritonpy, rights_claim: scope}
"""
    )
    with serve(f"--config={folder / 'server.yaml'}") as served:
        yield GuardedServer(served, keys, one, reader, root)


def clients(guarded: GuardedServer) -> Iterator[tuple[Any, Any]]:
    with tritonclient.http.InferenceServerClient(guarded.served.http) as client:
        yield tritonclient.http, client
    with tritonclient.grpc.InferenceServerClient(guarded.served.grpc) as client:
        yield tritonclient.grpc, client


def data(protocol: Any) -> list[Any]:
    return [
        protocol.InferInput("IN", [1, 2], "FP32").set_data_from_numpy(np.ones((1, 2), np.float32))
    ]


def refused(code: str, use: Callable[[], Any]) -> str:
    with pytest.raises(InferenceServerException) as caught:
        use()
    assert caught.value.status() in {STATUS[code], f"StatusCode.{code}"}, caught.value
    return str(caught.value.message())


@pytest.mark.parametrize("form", ["bearer", "x-api-key", "token"])
def test_permitted_clients_can_infer(guarded: GuardedServer, form: str) -> None:
    headers = {
        "bearer": bearer(guarded.one),
        "x-api-key": {"X-API-Key": guarded.one.text},
        "token": {"Authorization": f"Bearer {token()}"},
    }[form]
    for protocol, client in clients(guarded):
        lowered = {name.lower(): value for name, value in headers.items()}  # as gRPC requires
        assert client.infer("open_one", data(protocol), headers=lowered).as_numpy(
            "OUT"
        ).tolist() == [[1, 1]]


UNAUTHENTICATED: Mapping[str, Callable[[GuardedServer], dict[str, str]]] = {
    "nothing": lambda _: {},
    "another key": lambda _: bearer(new_key()),
    "a key with another end": lambda g: {"X-API-Key": g.root.text[:-2] + "__"},
    "a hash": lambda g: {"X-API-Key": g.root.hash},
    "two keys in one": lambda g: {"X-API-Key": f"{g.root.text}, {g.root.text}"},
    "another scheme": lambda g: {"Authorization": f"Basic {g.root.text}"},
    "an expired token": lambda _: {"Authorization": f"Bearer {token(exp=time.time() - 1)}"},
    "a token for another": lambda _: {"Authorization": f"Bearer {token(aud='other')}"},
    "an unsigned token": lambda _: {
        "Authorization": f"Bearer {jwt.encode({'sub': 'x', 'exp': 2**40, 'aud': 'tritonpy'}, '', 'none')}"
    },
    "a token signed with the public key": lambda _: {"Authorization": f"Bearer {swapped()}"},
    "a very long key": lambda _: {"X-API-Key": "a" * 7000},
}


def swapped() -> str:
    import hashlib
    import hmac

    def part(raw: bytes) -> str:
        return jwt.utils.base64url_encode(raw).decode()

    public = jwt.algorithms.RSAAlgorithm.to_jwk(SIGNER.public_key()).encode()
    payload = {"sub": "x", "exp": time.time() + 600, "aud": "tritonpy", "scope": "infer:*"}
    head = f"{part(json.dumps({'alg': 'HS256', 'kid': 'k'}).encode())}.{part(json.dumps(payload).encode())}"
    return f"{head}.{part(hmac.digest(public, head.encode(), hashlib.sha256))}"


@pytest.mark.parametrize("headers", UNAUTHENTICATED.values(), ids=UNAUTHENTICATED)
def test_unauthenticated_clients_get_the_same_error_for_every_model(
    guarded: GuardedServer, headers: Callable[[GuardedServer], dict[str, str]]
) -> None:
    given = {name.lower(): value for name, value in headers(guarded).items()}
    before = guarded.denied("unauthenticated", "infer")
    texts = set()
    for protocol, client in clients(guarded):
        for model in ("open_one", "closed", "nowhere"):
            texts.add(
                refused(
                    "UNAUTHENTICATED",
                    lambda: client.infer(model, data(protocol), headers=dict(given)),  # noqa: B023
                )
            )
        refused("UNAUTHENTICATED", lambda: client.get_model_repository_index(headers=dict(given)))  # noqa: B023
    assert texts == {"credentials are missing or unknown"}
    assert guarded.denied("unauthenticated", "infer") == before + 6


def test_a_key_for_one_model_does_not_permit_others(guarded: GuardedServer) -> None:
    given = {name.lower(): value for name, value in bearer(guarded.one).items()}
    for protocol, client in clients(guarded):
        for model in ("closed", "nowhere", "Open_one", "", "open"):
            refused(
                "PERMISSION_DENIED",
                lambda: client.infer(model or " ", data(protocol), headers=dict(given)),  # noqa: B023
            )


@pytest.mark.parametrize(
    "name",
    [
        "closed/../open_one",
        "..%2Fopen_one",
        "open_one%2F..%2Fclosed",
        "%63losed",
        "clo%73ed",
        "closed%00",
        "open_one/../closed",
        "%E2%80%AEclosed",
    ],
)
def test_escapes_in_a_path_do_not_bypass_access_rules(guarded: GuardedServer, name: str) -> None:
    for rest in ("/infer", "/generate", "/config", ""):
        body = BODY if rest in ("/infer", "/generate") else None
        assert guarded.request(f"/v2/models/{name}{rest}", guarded.one, body) in (403, 404)
        assert guarded.request(f"/v2/repository/models/{name}/unload", guarded.one, b"") in (
            403,
            404,
        )
    assert guarded.request(INFER.format("closed"), guarded.root, BODY) == 200


def test_each_verb_is_a_separate_right(guarded: GuardedServer) -> None:
    calls = {
        "read": [
            ("/v2", None),
            ("/v2/models/closed", None),
            ("/v2/models/stats", None),
            ("/v2/repository/index", b""),
        ],
        "manage": [
            ("/v2/repository/models/closed/unload", b""),
            ("/v2/repository/models/closed/load", b""),
        ],
        "infer": [(INFER.format("closed"), BODY)],
        "admin": [
            ("/v2/logging", None),
            ("/v2/trace/setting", None),
            ("/v2/systemsharedmemory/status", None),
        ],
    }
    for verb, requests in calls.items():
        for path, body in requests:
            assert guarded.request(path, guarded.reader, body) == (
                200 if verb == "read" else 403
            ), path
            assert guarded.request(path, guarded.one, body) == 403, path
            assert guarded.request(path, None, body) == 401, path
            assert guarded.request(path, guarded.root, body) not in (401, 403), path


def test_health_is_public_and_metrics_need_the_read_right(guarded: GuardedServer) -> None:
    assert guarded.request("/v2/health/ready") == guarded.request("/v2/health/live") == 200
    assert guarded.scrape()[0] == 401
    assert guarded.scrape(guarded.one)[0] == 403
    status, text = guarded.scrape(guarded.reader)
    assert (status, "tritonpy_denied_requests" in text) == (200, True)


def test_a_duplicate_credential_header_is_rejected(guarded: GuardedServer) -> None:
    for first, second in (
        (guarded.root, guarded.root),
        (guarded.root, new_key()),
        (new_key(), guarded.root),
    ):
        head = f"POST {INFER.format('open_one')} HTTP/1.1\r\nHost: h\r\nX-API-Key: {first.text}\r\nX-Api-Key: {second.text}\r\n"
        sent = f"{head}Connection: close\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY
        assert guarded.served.exchange(sent, last=False).startswith(b"HTTP/1.1 401 ")


def test_the_log_names_principals_but_no_credentials(guarded: GuardedServer) -> None:
    line = r"denied: 'one \([0-9a-f]{12}\)' may not read the server"
    guarded.served.wait(
        lambda: guarded.request("/v2", guarded.one) and re.search(line, guarded.served.log),
        "logs a denial",
    )
    for secret in (
        guarded.one.text,
        guarded.root.text,
        guarded.root.hash.partition(":")[2],
        token(),
    ):
        assert secret[17:] not in guarded.served.log


def test_keys_change_while_the_server_runs(guarded: GuardedServer) -> None:
    before, fresh = guarded.keys.read_text(), new_key()
    path = INFER.format("open_two")

    def replace(text: str) -> None:
        other = guarded.keys.with_name("other.toml")
        other.write_text(text)
        os.replace(other, guarded.keys)

    try:
        replace(before + key_file((fresh, KeyEntry("fresh", fresh.hash, infer=("open_two",)))))
        guarded.served.wait(
            lambda: guarded.request(path, fresh, BODY) == 200, "the new key is known"
        )
        assert guarded.request(path, guarded.one, BODY) == 200
        replace("[broken")
        guarded.served.wait_until_logged(
            "the API keys in .* read failed, the previous value stays in use"
        )
        assert guarded.request(path, fresh, BODY) == 200
        guarded.keys.unlink()
        guarded.served.wait_until_logged("FileNotFoundError")
        assert guarded.request(path, fresh, BODY) == 200
        replace(before)
        guarded.served.wait(
            lambda: guarded.request(path, fresh, BODY) == 401, "the key is forgotten"
        )
    finally:
        replace(before)
    guarded.served.wait(
        lambda: guarded.request(path, guarded.one, BODY) == 200, "the old keys are known"
    )


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        ("--http-restricted-api=bogus:k=v", "unknown restricted api 'bogus'"),
        (
            "--grpc-restricted-protocol=health",
            "--grpc-restricted-protocol option format is '<config name>:<setting>=<value>'. Got health",
        ),
        (
            "--http-header-forward-pattern=(",
            "header_forward_pattern: '(' is not a valid regular expression",
        ),
        (
            "--grpc-header-forward-pattern=[",
            "header_forward_pattern: '[' is not a valid regular expression",
        ),
    ],
)
def test_invalid_access_flags_are_named(serve: Serve, models: Models, flag: str, text: str) -> None:
    models.path.mkdir(exist_ok=True)
    with serve(f"--model-repository={models.path}", flag, until=None) as served:
        assert served.wait_until_exit() == 1
        assert text in served.log


def test_an_api_in_two_groups_is_an_error(serve: Serve, models: Models) -> None:
    models.path.mkdir(exist_ok=True)
    flags = ("--http-restricted-api=health,metadata:a=b", "--http-restricted-api=health:c=d")
    with serve(f"--model-repository={models.path}", *flags, until=None) as served:
        assert served.wait_until_exit() == 1
        assert (
            "restricted api 'health' can not be specified in multiple config groups" in served.log
        )
