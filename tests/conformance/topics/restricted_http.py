"""HTTP calls that need a header: every category, with and without the header."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.exchange import CONTROL_KEY, Exchange, Http, get, post, topic
from tests.conformance.inference import Inference, given

SECRET = ("infer-key", "v=1")
CONTROLLED = ("health", "model-repository", "statistics")
OTHERS = ("metadata", "inference", "model-config", "shared-memory", "trace", "logging")
INFERENCE = Inference("echo_request", {"IN": given("INT32", 7)}, outputs=("REQUEST",))
GENERATE = "/v2/models/echo_request/generate"
CALLS: dict[str, Http] = {
    "live": get("/v2/health/live"),
    "ready": get("/v2/health/ready"),
    "model ready": get("/v2/models/echo_request/ready"),
    "version ready": get("/v2/models/echo_request/versions/1/ready"),
    "unknown model ready": get("/v2/models/never_there/ready"),
    "index": post("/v2/repository/index", {"ready": True}),
    "load": post("/v2/repository/models/never_there/load", {}),
    "unload": post("/v2/repository/models/never_there/unload", {}),
    "other repository": post("/v2/repository/other/models/never_there/load", {}),
    "all statistics by POST": post("/v2/models/stats"),
    "unknown statistics": get("/v2/models/never_there/stats"),
    "server": get("/v2"),
    "model": get("/v2/models/echo_request"),
    "version": get("/v2/models/echo_request/versions/1"),
    "configuration": get("/v2/models/echo_request/config"),
    "inference": INFERENCE.json(),
    "binary inference": INFERENCE.binary(),
    "inference by GET": get(INFERENCE.path),
    "inference of an unknown model": replace(INFERENCE.json(), path="/v2/models/never_there/infer"),
    "inference of a strange version": replace(
        INFERENCE.json(), path="/v2/models/echo_request/versions/x/infer"
    ),
    "generate by GET": get(GENERATE),
    "generate nothing": post(GENERATE, {}),
    "generate_stream by GET": get(f"{GENERATE}_stream"),
    "shared memory": get("/v2/systemsharedmemory/status"),
    "shared memory of a GPU": get("/v2/cudasharedmemory/status"),
    "one region": get("/v2/systemsharedmemory/region/r/status"),
    "unregister": post("/v2/systemsharedmemory/region/r/unregister"),
    "trace of a model": get("/v2/models/never_there/trace/setting"),
    "logging by POST": post("/v2/logging", b"{"),
    "nowhere": get("/v2/nowhere"),
    "below health": get("/v2/health/lively"),
    "no version": get("/v2/models/echo_request/versions/"),
    "no model": get("/v2/models//ready"),
}
WRONG = {
    "wrong value": (("infer-key", "v=2"),),
    "prefix of the value": (("infer-key", "v="),),
    "value in capitals": (("infer-key", "V=1"),),
    "no value": (("infer-key", ""),),
    "value of another": (("infer-key", CONTROL_KEY[1]),),
    "another name": (("infer_key", "v=1"),),
    "second of two": (("infer-key", "v=2"), SECRET),
}
NOT_REPEATED = {"server", "unknown model ready", "inference of an unknown model"}
"""With the header they differ as they do without restrictions."""
RIGHT = {"capitals": (("INFER-KEY", "v=1"),), "first of two": (SECRET, ("infer-key", "v=2"))}


def with_headers(call: Http, *headers: tuple[str, str]) -> Http:
    return replace(call, headers=(*call.headers, *headers))


TOPIC = topic(
    "restricted_http",
    "echo_request",
    [
        *(Exchange(f"{name}: without", (call,)) for name, call in CALLS.items()),
        *(
            Exchange(f"{name}: with", (with_headers(call, SECRET, CONTROL_KEY),))
            for name, call in CALLS.items()
            if name not in NOT_REPEATED
        ),
        *(
            Exchange(name, (with_headers(CALLS["configuration"], *headers),))
            for name, headers in (WRONG | RIGHT).items()
        ),
        *(
            Exchange(f"inference: {name}", (with_headers(INFERENCE.binary(), *headers),))
            for name, headers in (WRONG | RIGHT).items()
        ),
        Exchange(
            "a refused inference is not counted",
            (INFERENCE.json(), with_headers(INFERENCE.json(), SECRET)),
            {"echo_request": 1},
        ),
    ],
    flags=(
        f"--http-restricted-api={','.join(CONTROLLED)}:{CONTROL_KEY[0]}={CONTROL_KEY[1]}",
        f"--http-restricted-api={','.join(OTHERS)}:{SECRET[0]}={SECRET[1]}",
    ),
)
