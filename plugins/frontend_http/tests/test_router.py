"""The management application by itself: which route answers, and what describes it."""

from __future__ import annotations

import asyncio
import json
import logging
import re

import msgspec
import pytest

from tritonpy import InvalidArgument
from tritonpy_frontend_http.generate.body import BodyReader
from tritonpy_frontend_http.router import ManagementApp, Reply, Request, describe, routes
from tritonpy_frontend_http.routes import management_app

from .conftest import FakeEngine


class Item(msgspec.Struct):
    name: str


class Box(msgspec.Struct):
    items: list[Item]


async def everything(request):
    """Return every item."""
    return [Item("a")]


async def one(request):
    """Return one item."""
    return Reply(json.dumps(dict(request.parameters)).encode(), headers={"etag": '"1"'})


async def write(request):
    """Write an item."""
    return await request.json()


async def refuse(request):
    raise InvalidArgument("no")


async def broken(request):
    raise RuntimeError("secret")


FOUND = [
    *routes("GET", ["/items/{name}", "/items/{name}/of/{box}"], one),
    *routes("GET", ["/items/all"], everything, list[Item]),
    *routes("PUT", ["/items/{name}"], write, Box),
    *routes("GET", ["/refuse", "/refuse/ready"], refuse),
    *routes("GET", ["/broken"], broken),
]


def ask(method, path, *parts, headers=()):
    """Return status, headers and body of an answer; the body comes in `parts`."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    waiting = [*messages, {"type": "http.request", "body": b"", "more_body": False}]
    sent = []

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    app = ManagementApp(FOUND, logging.getLogger("test"), BodyReader(10))
    scope = {"path": path, "method": method, "headers": [(b"if-match", b"3"), *headers]}
    asyncio.run(app(scope, receive, send))
    start, body = sent
    return start["status"], {key.decode(): value.decode() for key, value in start["headers"]}, body["body"]


def test_a_path_without_parameters_wins():
    assert ask("GET", "/items/all")[2] == b'[{"name":"a"}]'


def test_parameters_are_those_of_the_path_whatever_they_hold():
    assert json.loads(ask("GET", "/items/a b/of/größe\n")[2]) == {"name": "a b", "box": "größe\n"}
    assert ask("GET", "/items/.")[2] == b'{"name": "."}'


@pytest.mark.parametrize("path", ["/", "", "/items", "/items/", "/items/a/of", "/items/a/b/of/c", "/items/all\n/of/"])
def test_a_path_that_no_route_matches_is_not_found(path):
    status, headers, body = ask("GET", path)
    assert (status, headers["content-type"], body) == (404, "text/plain", b'{"error":"Not Found"}')


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/items/all", "application/json"), ("/refuse/ready", "text/plain"), ("/schema", "application/json")],
)
def test_another_method_is_not_allowed(path, kind):
    status, headers, body = ask("DELETE", path)
    assert (status, headers["content-type"], body) == (405, kind, b'{"error":"Method Not Allowed"}')


def test_an_answer_has_its_length_and_the_headers_of_the_reply():
    _, headers, body = ask("GET", "/items/x")
    assert headers == {"content-type": "application/json", "content-length": str(len(body)), "etag": '"1"'}


def test_a_body_is_read_to_its_end_and_bounded():
    assert ask("PUT", "/items/x", b"[1", b",2]")[2] == b"[1,2]"
    assert ask("PUT", "/items/x")[2] == b"null"
    status, _, body = ask("PUT", "/items/x", *[b"1" * 8] * 100)
    assert status == 400
    assert json.loads(body)["error"].startswith("request JSON size of 800 bytes exceeds")


def test_a_header_is_found_by_its_name():
    request = Request({"headers": [(b"if-match", b"3")]}, None, {})
    assert (request.header("if-match"), request.header("etag")) == ("3", "")


def test_errors_are_answered_and_the_unexpected_keeps_its_secret(caplog):
    assert ask("GET", "/refuse")[::2] == (400, b'{"error":"no"}')
    status, _, body = ask("GET", "/broken")
    assert status == 500
    assert b"secret" not in body
    assert "secret" in caplog.text


def test_the_description_is_complete_and_names_no_operation_twice():
    document = describe(management_app(FakeEngine(), logging.getLogger("test"), 1).routes)
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names) > 20
    assert all(operation["summary"] for operation in operations)
    text = json.dumps(document)
    references = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert references == document["components"]["schemas"].keys() >= {"ServerMetadata", "ModelStatistics"}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert [each["name"] for each in operation["parameters"]] == re.findall(r"\{(\w+)\}", path)


def test_the_schema_is_served_at_both_of_its_paths():
    assert json.loads(ask("GET", "/schema")[2])["paths"].keys() == {route.path for route in FOUND}
    assert ask("GET", "/schema")[2] == ask("GET", "/schema/openapi.json")[2]
