"""Trace settings, read and changed over both protocols, and their effects."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, Http, Step, get, post, topic, unload
from tests.conformance.inference import Inference, given
from tritonpy_protos import grpc_service_pb2 as pb

FLAGS = (
    "--trace-config=triton,file=traces.json",
    "--trace-config=rate=100",
    "--trace-config=triton,log-frequency=7",
)
SERVER = "/v2/trace/setting"
MODEL = "/v2/models/add_sub/trace/setting"
OTHER = "/v2/models/echo_request/trace/setting"
CLEARED = {"trace_level": None, "trace_rate": None, "trace_count": None, "log_frequency": None}
ON = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}
BODIES: dict[str, Any] = {
    "nothing": {},
    "no object": [],
    "a number": 7,
    "no body": b"",
    "no JSON": b"{oops",
    "half an object": b'{"trace_rate": "5"',
    "two documents": b"{} {}",
    "unknown key": {"trace_speed": "1"},
    "mode": {"trace_mode": "opentelemetry"},
    "null": CLEARED,
    "level": {"trace_level": ["TIMESTAMPS"]},
    "both levels": {"trace_level": ["TIMESTAMPS", "TENSORS"]},
    "both levels the other way round": {"trace_level": ["TENSORS", "TIMESTAMPS"]},
    "a level twice": {"trace_level": ["TENSORS", "TENSORS"]},
    "level off": {"trace_level": ["OFF"]},
    "level off and another": {"trace_level": ["OFF", "TENSORS"]},
    "another level and off": {"trace_level": ["TENSORS", "OFF"]},
    "no level": {"trace_level": []},
    "unknown level": {"trace_level": ["LOUD"]},
    "unknown level and a known one": {"trace_level": ["LOUD", "TENSORS"]},
    "levels in small letters": {"trace_level": ["timestamps"]},
    "older names of levels": {"trace_level": ["MIN", "MAX"]},
    "level as text": {"trace_level": "TIMESTAMPS"},
    "level as number": {"trace_level": [1]},
    "level as object": {"trace_level": {"a": "TENSORS"}},
    "level true": {"trace_level": True},
    **{
        f"{key}: {value!r}": {key: value}
        for key in ("trace_rate", "trace_count", "log_frequency")
        for value in ("5", "0", "-1", "-2", "x", "", " 12abc", "+3", "1.9", "0x10", "2147483647", "2147483648",
                      "4294967295", "-2147483649", "99999999999999999999", 5, 5.5, True, ["5"], {"a": 1})
    },
    "file": {"trace_file": "other.json"},
    "file null": {"trace_file": None},
    "file and a wrong rate": {"trace_file": "other.json", "trace_rate": "x"},
    "wrong level and wrong rate": {"trace_level": "x", "trace_rate": "x"},
    "wrong rate and wrong count": {"trace_rate": "x", "trace_count": "x"},
    "right level and wrong count": {"trace_level": ["TENSORS"], "trace_count": "-5"},
    "rate of nothing": {"trace_level": ["TIMESTAMPS"], "trace_rate": "0"},
    "rate of nothing while off": {"trace_level": ["OFF"], "trace_rate": "0"},
}  # fmt: skip
VALUES: dict[str, dict[str, list[str]]] = {
    "read": {},
    "cleared": {"trace_level": [], "trace_rate": [], "trace_count": [], "log_frequency": []},
    "unknown": {"trace_speed": ["1"]},
    "mode": {"trace_mode": ["opentelemetry"]},
    "both levels": {"trace_level": ["TIMESTAMPS", "TENSORS"]},
    "level off": {"trace_level": ["OFF"]},
    "level off and another": {"trace_level": ["OFF", "TENSORS"]},
    "unknown level": {"trace_level": ["LOUD"]},
    "file": {"trace_file": ["other.json"]},
    "no file": {"trace_file": []},
    "two rates": {"trace_rate": ["1", "2"]},
    "two counts": {"trace_count": ["1", "2"]},
    "two frequencies": {"log_frequency": ["1", "2"]},
    **{
        f"{key}: {value!r}": {key: [value]}
        for key in ("trace_rate", "trace_count", "log_frequency")
        for value in ("5", "0", "-1", "-2", "x", "", " 12abc", "2147483648", "-2147483649")
    },
    "wrong rate and wrong count": {"trace_rate": ["x"], "trace_count": ["x"]},
    "rate of nothing": {"trace_level": ["TIMESTAMPS"], "trace_rate": ["0"]},
}


def setting(values: dict[str, list[str]], model: str = "") -> Grpc:
    """Return the call that changes and reads settings."""
    message = pb.TraceSettingRequest(model_name=model)
    for name, texts in values.items():
        message.settings[name].value.extend(texts)
    return Grpc("TraceSetting", message)


def changed(name: str, *steps: Step) -> Exchange:
    """Return an exchange that restores the settings at its end."""
    return Exchange(
        name, (*steps, post(MODEL, CLEARED), post(OTHER, CLEARED), post(SERVER, CLEARED))
    )


def body(given: Any) -> bytes:
    return given if isinstance(given, bytes) else json.dumps(given).encode()


INFERENCE = Inference(
    "add_sub", {"INPUT0": given("FP32", 1, 2, 3, 4), "INPUT1": given("FP32", 1, 1, 1, 1)}
)
TOPIC = topic(
    "trace_settings",
    "add_sub echo_request",
    [
        *(changed(f"server, {name}", post(SERVER, body(given)), get(SERVER)) for name, given in BODIES.items()),
        *(
            changed(f"model, {name}", post(MODEL, body(given)), get(MODEL), get(SERVER), get(OTHER))
            for name, given in BODIES.items()
        ),
        *(changed(f"gRPC, {name}", setting(values), setting({})) for name, values in VALUES.items()),
        *(
            changed(f"gRPC model, {name}", setting(values, "add_sub"), setting({}, "add_sub"), setting({}))
            for name, values in VALUES.items()
        ),
        changed(
            "a model follows the server where it has nothing of its own",
            post(MODEL, {"trace_rate": "3"}),
            post(SERVER, {"trace_rate": "5", "trace_count": "9"}),
            get(MODEL), get(OTHER),
            post(MODEL, {"trace_count": "2"}),
            post(SERVER, {"trace_count": None}),
            get(MODEL), get(OTHER),
            post(MODEL, {"trace_rate": None}),
            get(MODEL), get(SERVER),
        ),
        changed(
            "a rate of nothing waits for tracing to be turned on",
            post(MODEL, {"trace_rate": "0"}), get(MODEL), post(MODEL, {"trace_level": ["TENSORS"]}), get(MODEL),
            post(SERVER, {"trace_level": ["TIMESTAMPS"]}), get(SERVER), get(MODEL),
        ),
        changed(
            "requests use up a count",
            post(SERVER, {**ON, "trace_count": "3"}),
            INFERENCE.json(), get(SERVER), INFERENCE.grpc(), INFERENCE.grpc(), get(SERVER), INFERENCE.json(), get(SERVER),
        ),
        changed(
            "a rate uses up a count more slowly",
            post(SERVER, {**ON, "trace_rate": "2", "trace_count": "3"}),
            INFERENCE.grpc(), get(SERVER), INFERENCE.grpc(), get(SERVER), INFERENCE.grpc(), INFERENCE.grpc(), get(SERVER),
        ),
        changed(
            "a model's requests use up its own count",
            post(MODEL, {**ON, "trace_count": "3"}), post(SERVER, {**ON, "trace_count": "5"}),
            INFERENCE.grpc(), get(MODEL), get(SERVER), get(OTHER),
        ),
        changed(
            "a change keeps what is left of a count",
            post(SERVER, {**ON, "trace_count": "3"}), INFERENCE.grpc(), post(SERVER, {"log_frequency": "4"}), get(SERVER),
            post(SERVER, {"trace_count": "8"}), get(SERVER),
        ),
        Exchange("unknown model", (get("/v2/models/nobody/trace/setting"), post("/v2/models/nobody/trace/setting", b"{oops"))),
        Exchange("gRPC unknown model", (setting({}, "nobody"), setting({"trace_rate": ["x"]}, "nobody"))),
        Exchange(
            "unloaded model",
            (
                post("/v2/repository/models/repeat/load", {}), post("/v2/models/repeat/trace/setting", {"trace_rate": "4"}),
                unload("repeat"), get("/v2/models/repeat/trace/setting"), setting({}, "repeat"),
                post("/v2/repository/models/repeat/load", {}), get("/v2/models/repeat/trace/setting"),
                post("/v2/models/repeat/trace/setting", CLEARED), unload("repeat"),
            ),
        ),
        *(
            Exchange(f"{method} {path}", (Http(path, b"{}", method),))
            for method in ("PUT", "DELETE", "PATCH")
            for path in (SERVER, MODEL)
        ),
        *(
            Exchange(f"no path {path}", (get(path), post(path, {})))
            for path in (
                "/v2/models/add_sub/versions/1/trace/setting", "/v2/trace", "/v2/trace/settings", "/v2/trace/setting/",
                "/v2/models/add_sub/trace", "/v2/models/trace/setting",
            )
        ),
    ],
    flags=FLAGS,
)  # fmt: skip
