from __future__ import annotations

import pytest

from tritonpy import ApiCategory, Conflict, Engine, NotFound, Restriction, Unauthenticated, Unavailable, Verb

from .conftest import FakeEngine
from .doorkeeper import Doorkeeper

PATH = "/v2/toys/ball"


class Offering(FakeEngine):
    """Offers what the toy engine does."""

    refusal: Exception | None = None

    def operations(self):
        return self.toy.operations()

    def operate(self, name, call):
        if self.refusal is not None:
            raise self.refusal
        return self.toy.operate(name, call)


@pytest.fixture
def engine():
    return Offering()


def test_an_operation_gets_path_body_and_revision_and_answers_with_its_tag(server):
    reply = server.call("PUT", PATH, {"a": [1, None]}, {"If-Match": '"3"'})
    assert (reply.status, reply.headers["etag"]) == (200, '"4"')
    assert reply.headers["content-type"] == "application/json"
    assert reply.json == {"thing": "ball", "said": {"a": [1, None]}, "revision": 4}
    assert server.call("PUT", "/v2/toys/gro%C3%9F", "text").json["thing"] == "groß"
    assert server.call("PUT", PATH, False, {"If-Match": "7"}).json["revision"] == 8


def test_without_a_body_there_is_none_and_an_empty_object_is_one(server):
    reply = server.call("PUT", PATH)
    assert (reply.status, reply.error) == (400, "say something, and it is repeated")
    assert server.call("PUT", PATH, {}).json["said"] == {}


@pytest.mark.parametrize(
    ("error", "status"), [(NotFound("gone"), 404), (Conflict("changed"), 412), (Unavailable("later"), 503)]
)
def test_what_it_refuses_is_an_error_like_any_other(server, engine, error, status):
    engine.refusal = error
    reply = server.call("PUT", PATH, {})
    assert (reply.status, reply.error) == (status, error.message)


def test_a_bug_in_it_is_no_more_than_an_incident(server, engine):
    engine.refusal = ZeroDivisionError()
    assert server.call("PUT", PATH, {}).status == 500
    engine.refusal = None
    assert server.call("PUT", PATH, {}).status == 200


@pytest.mark.parametrize("tag", ["*", 'W/"3"', "x", "-1", '"1", "2"', "9" * 30])
def test_a_tag_that_no_answer_had_is_refused(server, tag):
    reply = server.call("PUT", PATH, {}, {"If-Match": tag})
    assert reply.status == 400
    assert "If-Match must be the ETag of an answer" in reply.error


def test_a_body_must_be_json(server):
    reply = server.call("PUT", PATH, b"{")
    assert reply.status == 400
    assert reply.error.startswith("failed to parse the request JSON buffer")


def test_other_methods_and_paths_are_not_there(server):
    for method in ("GET", "POST", "DELETE"):
        assert server.call(method, PATH).status == 405
    for path in ("/v2/toys", "/v2/toys/", "/v2/toys/a/b", "/v2/toys/a%2Fb"):
        assert server.call("PUT", path, {}).status == 404


def test_it_is_described(server):
    described = server.call("GET", "/schema/openapi.json").json["paths"]["/v2/toys/{thing}"]["put"]
    assert described["summary"] == "Say of a toy what the caller says."
    assert [each["name"] for each in described["parameters"]] == ["thing"]


def test_it_takes_its_right_on_the_server(start_server):
    keeper = Doorkeeper()
    server = start_server(keeper)
    assert server.call("PUT", PATH, {}).status == 200
    assert server.call("GET", PATH).status == 405
    assert keeper.asked == [(Verb.MANAGE, ""), (Verb.ADMIN, "")]
    keeper.refusal = Unauthenticated("who")
    assert server.call("PUT", PATH, {}).status == 401
    assert server.call("PUT", "/v2/toys", {}).status == 404


def test_it_may_be_restricted(start_server):
    server = start_server(restricted_apis=(Restriction((ApiCategory.OPERATIONS,), "secret", "v"),))
    reply = server.call("PUT", PATH, {})
    assert (reply.status, reply.error) == (403, "This API is restricted, expecting header 'secret'")
    assert server.call("PUT", PATH, {}, {"secret": "v"}).status == 200
    assert server.call("GET", "/v2").status == 200


def test_an_engine_offers_nothing_unless_it_does():
    assert Engine.operations(FakeEngine()) == ()
    with pytest.raises(NotFound):
        Engine.operate(FakeEngine(), "nothing", None)
