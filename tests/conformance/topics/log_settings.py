"""Log settings, read and changed over both protocols, and their effects."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.exchange import Exchange, Grpc, Http, LogLines, Step, get, post, topic
from tests.conformance.inference import Inference, text
from tritonpy_protos import grpc_service_pb2 as pb

LOGGING = "/v2/logging"
PLAIN = {
    "log_info": True,
    "log_warning": True,
    "log_error": True,
    "log_verbose_level": 0,
    "log_format": "default",
}
SWITCHES = ("log_info", "log_warning", "log_error")
BODIES: dict[str, Any] = {
    "nothing": {},
    "no object": [],
    "text": "x",
    "no body": b"",
    "no JSON": b"{oops",
    "unknown key": {"log_colour": True},
    "null": {"log_file": None, **dict.fromkeys(PLAIN)},
    "file": {"log_file": "other.log"},
    "empty file": {"log_file": ""},
    "file as number": {"log_file": 7},
    "file and a switch": {"log_file": "other.log", "log_info": False},
    **{
        f"{key}: {value!r}": {key: value}
        for key in SWITCHES
        for value in (False, True, None, 0, 1, "true", "", 1.0, [True], {"a": True})
    },
    **{
        f"log_verbose_level: {value!r}": {"log_verbose_level": value}
        for value in (0, 1, 7, 2147483647, 4294967296, 5000000000, -1, 1.5, True, "1", None, [1])
    },
    **{
        f"log_format: {value!r}": {"log_format": value}
        for value in ("default", "ISO8601", "iso8601", "Default", "", "xml", None, 7, True, ["default"])
    },
    "all at once": {"log_info": False, "log_warning": False, "log_error": False, "log_verbose_level": 3, "log_format": "ISO8601"},
    "a mistake at the end": {"log_info": False, "log_format": "xml"},
    "a mistake at the beginning": {"log_info": 7, "log_format": "ISO8601"},
}  # fmt: skip
VALUES: dict[str, tuple[tuple[str, str, Any], ...]] = {
    "nothing": (),
    "unknown": (("log_colour", "bool_param", True),),
    "file": (("log_file", "string_param", "other.log"),),
    "empty file": (("log_file", "string_param", ""),),
    **{
        f"{key} {choice} {value!r}": ((key, choice, value),)
        for key in (*SWITCHES, "log_verbose_level", "log_format")
        for choice, value in (
            ("bool_param", False), ("uint32_param", 3), ("uint32_param", 0), ("string_param", "ISO8601"), ("string_param", "x"),
        )
    },
    "a mistake at the end": (("log_info", "bool_param", False), ("log_format", "string_param", "x")),
    "a mistake at the beginning": (("log_info", "string_param", "x"), ("log_verbose_level", "uint32_param", 2)),
}  # fmt: skip


def settings(values: tuple[tuple[str, str, Any], ...]) -> Grpc:
    """Return the call that changes and reads settings."""
    message = pb.LogSettingsRequest()
    for name, choice, value in values:
        setattr(message.settings[name], choice, value)
    return Grpc("LogSettings", message)


def empty(name: str) -> Grpc:
    """Return the call that names a setting without a value."""
    message = pb.LogSettingsRequest()
    message.settings[name].SetInParent()
    return Grpc("LogSettings", message)


def changed(name: str, *steps: Step) -> Exchange:
    """Return an exchange that restores the settings at its end."""
    return Exchange(name, (*steps, post(LOGGING, PLAIN)))


def body(given: Any) -> bytes:
    return given if isinstance(given, bytes) else json.dumps(given).encode()


def logged(marker: str, count: int, **given: Any) -> Exchange:
    """Return the exchange that logs at every level through a model, under the given settings."""
    inference_call = Inference("logging", {"TEXT": text(marker)}).grpc()
    return Exchange(
        f"the lines of a model: {marker}",
        (post(LOGGING, given), inference_call, post(LOGGING, PLAIN), LogLines(marker, count)),
    )


TOPIC = topic(
    "log_settings",
    "logging",
    [
        *(changed(f"HTTP, {name}", post(LOGGING, body(given)), get(LOGGING)) for name, given in BODIES.items()),
        *(changed(f"gRPC, {name}", settings(values), settings(())) for name, values in VALUES.items()),
        *(changed(f"gRPC, {name} without a value", empty(name)) for name in ("log_file", *PLAIN)),
        changed("HTTP tells what gRPC changed", settings((("log_warning", "bool_param", False),)), get(LOGGING)),
        *(Exchange(f"{method}", (Http(LOGGING, b"{}", method),)) for method in ("PUT", "DELETE", "PATCH")),
        *(Exchange(f"no path {path}", (get(path), post(path, {}))) for path in ("/v2/logging/", "/v2/log", "/v2/models/logging/logging")),
        logged("everything as at the start", 6),
        logged("without infos", 4, log_info=False),
        logged("without warnings", 4, log_warning=False),
        logged("without errors", 4, log_error=False),
        logged("errors alone", 2, log_info=False, log_warning=False),
        logged("verbose", 7, log_verbose_level=1),
    ],
)  # fmt: skip
