from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InferRequest, NotFound, PermissionDenied, Unauthenticated
from tritonpy.auth import ApiCategory, Restriction, Verb
from tritonpy_http_api.access import ROUTES, HttpAccess
from tritonpy_http_api.generate.body import BodyReader
from tritonpy_http_api.routes import management_app

from .conftest import FakeEngine
from .recording_authorizer import RecordingAuthorizer

RESTRICTED = (Restriction((ApiCategory.INFERENCE, ApiCategory.METADATA), "Secret", "v"),)


def scope(path, raw_path=None, headers=()):
    return {
        "path": path,
        "raw_path": (raw_path or path).encode(),
        "headers": list(headers),
        "state": {},
    }


@pytest.mark.parametrize(
    ("path", "verb", "model"),
    [
        ("/v2", Verb.READ, ""),
        ("/v2/models/stats", Verb.READ, ""),
        ("/v2/models/m", Verb.READ, "m"),
        ("/v2/models/m/versions/3", Verb.READ, "m"),
        ("/v2/models/m/config", Verb.READ, "m"),
        ("/v2/models/m/versions/3/stats", Verb.READ, "m"),
        ("/v2/models/stats/stats", Verb.READ, "stats"),
        ("/v2/models/m/infer", Verb.INFER, "m"),
        ("/v2/models/m/versions/3/generate_stream", Verb.INFER, "m"),
        ("/v2/models/m/trace/setting", Verb.ADMIN, "m"),
        ("/v2/trace/setting", Verb.ADMIN, ""),
        ("/v2/logging", Verb.ADMIN, ""),
        ("/v2/repository/index", Verb.READ, ""),
        ("/v2/repository/models/index", Verb.READ, ""),
        ("/v2/repository/models/m/load", Verb.MANAGE, "m"),
        ("/v2/repository/r/models/m/unload", Verb.MANAGE, "m"),
        ("/v2/repository/models/models/load", Verb.MANAGE, "models"),
        ("/v2/systemsharedmemory/region/r/register", Verb.ADMIN, ""),
        ("/v2/cudasharedmemory/status", Verb.ADMIN, ""),
        ("/v2/models/../config", Verb.READ, ".."),
        ("/v2/models/größe/config", Verb.READ, "größe"),
        ("/schema/openapi.json", Verb.READ, ""),
    ],
)
def test_a_path_requires_a_right_to_its_model(path, verb, model):
    authorizer = RecordingAuthorizer()
    request_scope = scope(path)
    assert HttpAccess((), "", authorizer).check_request(request_scope) is None
    assert authorizer.checks == [(verb, model)]
    assert request_scope["state"]["context"].principal is authorizer.principal


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("/v2/", None),
        ("//v2", None),
        ("/v2/models//config", None),
        ("/v2/models/m/config/", None),
        ("/v2/models/m/versions/x", None),
        ("/v2/models/m/nothing", None),
        ("/v3", None),
        ("/v2/models/a/config\n", None),
        ("/v2/models/a/config", "/v2/models/a%2Fconfig"),
        ("/v2/models/a/versions/1/config", "/v2/models/a%2fversions%2F1/config"),
        ("/v2/models/m/config", "/v2%2Fmodels/m/config"),
    ],
)
def test_unknown_and_ambiguous_paths_are_not_found(path, raw):
    authorizer = RecordingAuthorizer()
    assert isinstance(HttpAccess((), "", authorizer).check_request(scope(path, raw)), NotFound)
    assert authorizer.checks == []


def test_the_table_covers_every_route():
    """With authorization, a route missing in the table would not exist; a wrong entry would grant access."""
    app = management_app(FakeEngine(), logging.getLogger("test"), BodyReader(1))
    paths = {
        re.sub(r"\{\w+(:\w+)?\}", "name", re.sub(r"\{version:\w+\}", "7", route.path))
        for route in app.routes
    }
    missing = {
        path for path in paths if not any(pattern.fullmatch(path) for pattern, _, _ in ROUTES)
    }
    assert {path for path in missing if not path.startswith("/schema")} == set()
    assert len(paths) > 10


def test_a_denied_call_has_the_reason():
    unknown = HttpAccess((), "", RecordingAuthorizer(Unauthenticated("who")))
    assert isinstance(unknown.check_request(scope("/v2")), Unauthenticated)
    assert isinstance(unknown.check_inference("m", []).refusal, Unauthenticated)


def test_health_is_public_unless_it_is_guarded():
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/m/ready"):
        authorizer = RecordingAuthorizer(Unauthenticated("who"))
        assert HttpAccess((), "", authorizer).check_request(scope(path)) is None
        authorizer.public_endpoints = ()
        assert isinstance(
            HttpAccess((), "", authorizer).check_request(scope(path)), Unauthenticated
        )


def test_a_restricted_api_needs_its_header_before_anything_else():
    authorizer = RecordingAuthorizer()
    access = HttpAccess(RESTRICTED, "", authorizer)
    refusal = access.check_request(scope("/v2"))
    assert isinstance(refusal, PermissionDenied)
    assert refusal.message == "This API is restricted, expecting header 'Secret'"
    assert access.check_inference("m", [(b"secret", b"w")]).refusal.message == refusal.message
    assert authorizer.checks == []
    assert access.check_request(scope("/v2", headers=[(b"secret", b"v")])) is None
    assert access.check_inference("m", [(b"SECRET", b"v")]).refusal is None
    assert access.check_request(scope("/v2/models/m/config")) is None


def test_duplicate_headers_are_joined_for_the_authorizer():
    authorizer = RecordingAuthorizer()
    HttpAccess((), "", authorizer).check_inference(
        "m", [(b"X-API-Key", b"a"), (b"x-api-key", b"b"), (b"other", b"\xff")]
    )
    assert authorizer.headers == [{"x-api-key": "a, b", "other": "\udcff"}]


def test_the_context_sets_principal_and_forwarded_headers():
    authorizer = RecordingAuthorizer()
    context = HttpAccess((), "^x-", authorizer).check_inference(
        "m", [(b"X-A", b"1"), (b"x-b", "ö".encode()), (b"x-c", b"\xf6"), (b"y", b"2")]
    )
    request = InferRequest("m", {}, None)
    context.apply(request)
    assert request.principal is authorizer.principal
    assert request.parameters == {"X-A": "1", "x-b": "ö", "x-c": "ö"}


def test_a_request_keeps_the_headers_that_the_server_reads():
    access = HttpAccess((), "", None, frozenset({"x-tenant"}))
    request_scope = scope(
        "/v2/models/m/generate", headers=[(b"x-tenant", "größe".encode()), (b"y", b"2")]
    )
    assert access.check_request(request_scope) is None
    for context in (
        request_scope["state"]["context"],
        access.check_inference("m", [(b"X-Tenant", "größe".encode()), (b"y", b"2")]),
    ):
        request = InferRequest("m", {}, None)
        context.apply_principal(request)
        assert (request.headers, request.parameters) == ({"x-tenant": "größe"}, {})


@given(
    st.text(max_size=30),
    st.sampled_from(
        ["/v2/models/{}/config", "/v2/{}", "/{}", "/v2/repository/models/{}/load", "/v2/models/{}"]
    ),
)
def test_every_path_is_authorized(text, form):
    authorizer = RecordingAuthorizer(PermissionDenied("no"))
    authorizer.public_endpoints = ()
    path = form.format(text)
    assert (
        HttpAccess((), "", authorizer).check_request(
            scope(path, path.encode(errors="replace").decode())
        )
        is not None
    )
