from __future__ import annotations

import pytest

TRACE = "/v2/trace/setting"
OF_MODEL = "/v2/models/identity/trace/setting"
LOGGING = "/v2/logging"
OFF = {
    "trace_level": ["OFF"],
    "trace_rate": "1000",
    "trace_count": "-1",
    "log_frequency": "0",
    "trace_file": "",
    "trace_mode": "triton",
}


def test_settings_are_read_changed_and_cleared(server):
    assert server.call("GET", TRACE).json == OFF
    assert server.call("POST", TRACE, {"trace_rate": "5", "trace_count": "7"}).json == {
        **OFF,
        "trace_rate": "5",
        "trace_count": "7",
    }
    assert server.call("POST", OF_MODEL, {"trace_rate": "3"}).json["trace_rate"] == "3"
    assert server.call("POST", TRACE, {"trace_rate": None}).json == {**OFF, "trace_count": "7"}
    assert server.call("GET", OF_MODEL).json == {**OFF, "trace_rate": "3", "trace_count": "7"}


def test_an_unknown_model_is_refused_before_its_body_is_read(server):
    for method, body in (("GET", None), ("POST", b"{oops")):
        reply = server.call(method, "/v2/models/unknown/trace/setting", body)
        assert (reply.status, reply.error) == (400, "Request for unknown model : unknown")


@pytest.mark.parametrize("path", [TRACE, LOGGING])
def test_a_body_must_be_json(server, path):
    for body, text in (
        (b"", "The document is empty. at 0"),
        (b"{", "Missing a name for object member. at 1"),
    ):
        reply = server.call("POST", path, body)
        assert (reply.status, reply.error) == (
            500,
            f"failed to parse the request JSON buffer: {text}",
        )


def test_an_invalid_value_changes_nothing(server):
    reply = server.call("POST", TRACE, {"trace_count": "9", "log_frequency": "x"})
    assert (reply.status, reply.error) == (400, "Unable to parse 'log_frequency', got: x")
    assert server.call("GET", TRACE).json == OFF


def test_log_settings_before_an_invalid_one_take_effect(server):
    before = server.call("GET", LOGGING).json
    assert before == {
        "log_file": "", "log_info": True, "log_warning": True, "log_error": True, "log_verbose_level": 0,
        "log_format": "default",
    }  # fmt: skip
    changed = server.call("POST", LOGGING, {"log_verbose_level": 2, "log_format": "ISO8601"}).json
    assert changed == {**before, "log_verbose_level": 2, "log_format": "ISO8601"}
    reply = server.call("POST", LOGGING, {"log_info": False, "log_format": "xml"})
    assert (reply.status, reply.error) == (503, "invalid argument for --log_format, got: xml")
    assert server.call("GET", LOGGING).json == {**changed, "log_info": False}


@pytest.mark.parametrize("path", [TRACE, OF_MODEL, LOGGING])
def test_other_methods_are_not_allowed(server, path):
    for method in ("PUT", "DELETE", "PATCH"):
        assert server.call(method, path).status == 405


def test_a_version_has_no_settings(server):
    assert server.call("GET", "/v2/models/identity/versions/1/trace/setting").status == 404
