from __future__ import annotations

import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import ApiCategory, InferRequest, NotFound, PermissionDenied, Restriction, Unauthenticated, Verb
from tritonpy_frontend_http.access import ROUTES, HttpAccess
from tritonpy_frontend_http.generate.body import BodyReader
from tritonpy_frontend_http.routes import management_app

from .conftest import FakeEngine
from .doorkeeper import Doorkeeper

RESTRICTED = (Restriction((ApiCategory.INFERENCE, ApiCategory.METADATA), "Secret", "v"),)


def scope(path, raw_path=None, headers=()):
    return {"path": path, "raw_path": (raw_path or path).encode(), "headers": list(headers), "state": {}}


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
def test_a_path_asks_for_a_right_to_its_model(path, verb, model):
    keeper = Doorkeeper()
    entered = scope(path)
    assert HttpAccess((), "", keeper).refusal(entered) is None
    assert keeper.asked == [(verb, model)]
    assert entered["state"]["visit"].principal is keeper.principal


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
def test_a_path_that_means_nothing_or_two_things_does_not_exist(path, raw):
    keeper = Doorkeeper()
    assert isinstance(HttpAccess((), "", keeper).refusal(scope(path, raw)), NotFound)
    assert keeper.asked == []


def test_every_route_has_its_line():
    """A route that the table lacks would be gone where calls must be admitted; one in the wrong line would be open to the wrong callers."""
    app = management_app(FakeEngine(), logging.getLogger("test"), BodyReader(1))
    paths = {re.sub(r"\{\w+(:\w+)?\}", "name", re.sub(r"\{version:\w+\}", "7", route.path)) for route in app.routes}
    missing = {path for path in paths if not any(pattern.fullmatch(path) for pattern, _, _ in ROUTES)}
    assert {path for path in missing if not path.startswith("/schema")} == set()
    assert len(paths) > 10


def test_who_is_refused_is_told_why():
    unknown = HttpAccess((), "", Doorkeeper(Unauthenticated("who")))
    assert isinstance(unknown.refusal(scope("/v2")), Unauthenticated)
    assert isinstance(unknown.visit("m", []).refusal, Unauthenticated)


def test_health_is_open_unless_it_is_guarded():
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/m/ready"):
        keeper = Doorkeeper(Unauthenticated("who"))
        assert HttpAccess((), "", keeper).refusal(scope(path)) is None
        keeper.open_doors = ()
        assert isinstance(HttpAccess((), "", keeper).refusal(scope(path)), Unauthenticated)


def test_a_restricted_api_needs_its_header_before_anything_else():
    keeper = Doorkeeper()
    access = HttpAccess(RESTRICTED, "", keeper)
    refusal = access.refusal(scope("/v2"))
    assert isinstance(refusal, PermissionDenied)
    assert refusal.message == "This API is restricted, expecting header 'Secret'"
    assert access.visit("m", [(b"secret", b"w")]).refusal.message == refusal.message
    assert keeper.asked == []
    assert access.refusal(scope("/v2", headers=[(b"secret", b"v")])) is None
    assert access.visit("m", [(b"SECRET", b"v")]).refusal is None
    assert access.refusal(scope("/v2/models/m/config")) is None


def test_credentials_are_seen_as_they_were_sent():
    keeper = Doorkeeper()
    HttpAccess((), "", keeper).visit("m", [(b"X-API-Key", b"a"), (b"x-api-key", b"b"), (b"other", b"\xff")])
    assert keeper.headers == [{"x-api-key": "a, b", "other": "\udcff"}]


def test_an_admitted_visit_brings_caller_and_headers_into_the_request():
    keeper = Doorkeeper()
    visit = HttpAccess((), "^x-", keeper).visit(
        "m", [(b"X-A", b"1"), (b"x-b", "ö".encode()), (b"x-c", b"\xf6"), (b"y", b"2")]
    )
    request = InferRequest("m", {}, None)
    visit.apply(request)
    assert request.principal is keeper.principal
    assert request.parameters == {"X-A": "1", "x-b": "ö", "x-c": "ö"}


def test_a_request_keeps_the_headers_that_the_server_reads():
    access = HttpAccess((), "", None, frozenset({"x-tenant"}))
    entered = scope("/v2/models/m/generate", headers=[(b"x-tenant", "größe".encode()), (b"y", b"2")])
    assert access.refusal(entered) is None
    for visit in (entered["state"]["visit"], access.visit("m", [(b"X-Tenant", "größe".encode()), (b"y", b"2")])):
        request = InferRequest("m", {}, None)
        visit.keep(request)
        assert (request.headers, request.parameters) == ({"x-tenant": "größe"}, {})


@given(
    st.text(max_size=30),
    st.sampled_from(["/v2/models/{}/config", "/v2/{}", "/{}", "/v2/repository/models/{}/load", "/v2/models/{}"]),
)
def test_no_path_gets_by_without_being_asked(text, form):
    keeper = Doorkeeper(PermissionDenied("no"))
    keeper.open_doors = ()
    path = form.format(text)
    assert HttpAccess((), "", keeper).refusal(scope(path, path.encode(errors="replace").decode())) is not None
