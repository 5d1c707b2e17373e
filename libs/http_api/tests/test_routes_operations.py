from __future__ import annotations

import pytest

from tritonpy import Conflict, Engine, NotFound, Unauthenticated, Unavailable
from tritonpy.auth import ApiCategory, Restriction, Verb

from .conftest import FakeEngine
from .recording_authorizer import RecordingAuthorizer

PATH = "/v2/toys/ball"


class OperationsEngine(FakeEngine):
    """A fake engine with the operations of the toy engine."""

    refusal: Exception | None = None

    def operations(self):
        return self.toy.operations()

    def operate(self, name, call):
        if self.refusal is not None:
            raise self.refusal
        return self.toy.operate(name, call)


@pytest.fixture
def engine():
    return OperationsEngine()


def test_an_operation_receives_path_body_and_revision(server):
    reply = server.call("PUT", PATH, {"a": [1, None]}, {"If-Match": '"3"'})
    assert (reply.status, reply.headers["etag"]) == (200, '"4"')
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {"thing": "ball", "body": {"a": [1, None]}, "revision": 4}
    assert server.call("PUT", "/v2/toys/gro%C3%9F", "text").json["thing"] == "groß"
    assert server.call("PUT", PATH, False, {"If-Match": "7"}).json["revision"] == 8


def test_an_empty_object_is_a_body(server):
    reply = server.call("PUT", PATH)
    assert (reply.status, reply.error) == (400, "the operation needs a body")
    assert server.call("PUT", PATH, {}).json["body"] == {}


@pytest.mark.parametrize(
    ("error", "status"),
    [(NotFound("gone"), 404), (Conflict("changed"), 412), (Unavailable("later"), 503)],
)
def test_an_error_of_an_operation_has_its_status(server, engine, error, status):
    engine.refusal = error
    reply = server.call("PUT", PATH, {})
    assert (reply.status, reply.error) == (status, error.message)


def test_an_exception_in_an_operation_is_an_internal_error(server, engine):
    engine.refusal = ZeroDivisionError()
    assert server.call("PUT", PATH, {}).status == 500
    engine.refusal = None
    assert server.call("PUT", PATH, {}).status == 200


@pytest.mark.parametrize("tag", ["*", 'W/"3"', "x", "-1", '"1", "2"', "9" * 30])
def test_an_invalid_etag_is_refused(server, tag):
    reply = server.call("PUT", PATH, {}, {"If-Match": tag})
    assert reply.status == 400
    assert "If-Match must be the ETag of a response" in reply.error


def test_a_body_must_be_json(server):
    reply = server.call("PUT", PATH, b"{")
    assert reply.status == 400
    assert reply.error.startswith("failed to parse the request JSON buffer")


def test_other_methods_and_paths_are_refused(server):
    for method in ("GET", "POST", "DELETE"):
        assert server.call(method, PATH).status == 405
    for path in ("/v2/toys", "/v2/toys/", "/v2/toys/a/b", "/v2/toys/a%2Fb"):
        assert server.call("PUT", path, {}).status == 404


def test_operations_are_in_the_openapi_description(server):
    described = server.call("GET", "/schema/openapi.json").json["paths"]["/v2/toys/{thing}"]["put"]
    assert described["summary"] == "Return the body of the call."
    assert [each["name"] for each in described["parameters"]] == ["thing"]


def test_an_operation_requires_its_right(start_server):
    authorizer = RecordingAuthorizer()
    server = start_server(authorizer)
    assert server.call("PUT", PATH, {}).status == 200
    assert server.call("GET", PATH).status == 405
    assert authorizer.checks == [(Verb.MANAGE, ""), (Verb.ADMIN, "")]
    authorizer.refusal = Unauthenticated("who")
    assert server.call("PUT", PATH, {}).status == 401
    assert server.call("PUT", "/v2/toys", {}).status == 404


def test_operations_may_be_restricted(start_server):
    server = start_server(restricted_apis=(Restriction((ApiCategory.OPERATIONS,), "secret", "v"),))
    reply = server.call("PUT", PATH, {})
    assert (reply.status, reply.error) == (403, "This API is restricted, expecting header 'secret'")
    assert server.call("PUT", PATH, {}, {"secret": "v"}).status == 200
    assert server.call("GET", "/v2").status == 200


def test_an_engine_has_no_operations_by_default():
    assert Engine.operations(FakeEngine()) == ()
    with pytest.raises(NotFound):
        Engine.operate(FakeEngine(), "nothing", None)
