"""Loading, unloading and listing of models by clients."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.conformance.exchange import (
    Exchange,
    Grpc,
    Http,
    IndexEntry,
    Step,
    get,
    load,
    post,
    topic,
    unload,
)
from tests.conformance.inference import Inference, given
from tests.conformance.repository import MODELS
from tritonpy_protos import grpc_service_pb2 as pb

SOURCE = (MODELS / "identity" / "1" / "model.py").read_text(encoding="utf-8")
FILE = base64.b64encode(SOURCE.encode()).decode()
TENSORS: dict[str, Any] = {
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}],
}
CONFIG: dict[str, Any] = {"backend": "python", **TENSORS}
AGAIN = (load("identity"), IndexEntry("identity"))
AWAY = "never_loaded"  # not loaded, so its unloads return immediately
PATH = "/v2/repository/models/identity"
QUERY = Inference("identity", {"IN": given("INT32", 1, 2)}).grpc()
PARAMETERS: dict[str, Any] = {
    "parameters that are a list": {"parameters": []},
    "parameters that are text": {"parameters": "config"},
    "parameters that are nothing": {"parameters": None},
    "config that is an object": {"parameters": {"config": CONFIG}},
    "config that is a number": {"parameters": {"config": 1}},
    "config that is nothing": {"parameters": {"config": None}},
    "config that is no JSON": {"parameters": {"config": "{"}},
    "config that is empty": {"parameters": {"config": ""}},
    "config that is a list": {"parameters": {"config": "[]"}},
    "an unknown parameter": {"parameters": {"unknown": "value"}},
    "an unknown number": {"parameters": {"unknown": 1}},
    "an unknown truth": {"parameters": {"unknown": True}},
    "an unknown object": {"parameters": {"unknown": {}}},
    "a file without config": {"parameters": {"file:1/model.py": FILE}},
    "a file that is a number": {"parameters": {"config": json.dumps(CONFIG), "file:1/model.py": 1}},
    "a file that is not base64": {
        "parameters": {"config": json.dumps(CONFIG), "file:1/model.py": "?!"}
    },
    "a file without a name": {"parameters": {"config": json.dumps(CONFIG), "file:": FILE}},
    "a file above the model": {
        "parameters": {"config": json.dumps(CONFIG), "file:../model.py": FILE}
    },
    "another key": {"other": 1},
    "the body of an unload": {"parameters": {"unload_dependents": True}},
}
SPECIFIED = '"input":[{"name":"IN","data_type":"TYPE_INT32","dims":[-1]}],"output":[{"name":"OUT","data_type":"TYPE_INT32","dims":[-1]}]'
LENIENT: dict[str, str] = {
    "keys without quotes": '{backend:"python",%s}',
    "single quotes": "{'backend':'python',%s}",
    "a comma at the end": '{"backend":"python",%s,}',
    "a comma at the end of a list": '{"backend":"python",metric_tags:{},version_policy:{specific:{versions:[1,]}},%s}',
    "two commas": '{"backend":"python",,%s}',
    "a comment": '{"backend":"python",/* c */%s}',
    "an enum value without quotes": '{"backend":"python",model_transaction_policy:{decoupled:False},%s}',
    "an escape that JSON does not have": r'{"backend":"pyt\hon",%s}',
    "an octal number": '{"backend":"python",max_batch_size:00,%s}',
    "text behind it": '{"backend":"python",%s} x',
    "a boolean in quotes": '{"backend":"python",model_transaction_policy:{decoupled:"no"},%s}',
    "another model's name": '{name:"other",backend:"python",%s}',
}
BODIES = {
    "no JSON": b"{",
    "a list": b"[]",
    "text": b'"text"',
    "a number": b"1",
    "nothing": b"null",
    "no bytes": b"",
}
READY: dict[str, Any] = {
    "true": True,
    "false": False,
    "text": "true",
    "number": 1,
    "null": None,
    "list": [],
}
NAMES = {
    "unknown": "not_there",
    "dots": "..",
    "dots behind a space": "%20..",
    "a path upwards": "..%2Fmodels",
    "an escaped path": "identity%2F1",
    "a space": "%20",
    "unicode": "gr%C3%B6%C3%9Fe",
}


def loaded(name: str, body: Any) -> Exchange:
    return Exchange(f"load: {name}", (post(f"{PATH}/load", body), IndexEntry("identity"), QUERY))


def by_grpc(
    name: str = "identity", repository: str = "", **parameters: pb.ModelRepositoryParameter
) -> Grpc:
    request = pb.RepositoryModelLoadRequest(model_name=name, repository_name=repository)
    for key, value in parameters.items():
        request.parameters[key].CopyFrom(value)
    return Grpc("RepositoryModelLoad", request)


def unloaded_by_grpc(
    name: str = "identity", repository: str = "", **parameters: pb.ModelRepositoryParameter
) -> Grpc:
    request = pb.RepositoryModelUnloadRequest(model_name=name, repository_name=repository)
    for key, value in parameters.items():
        request.parameters[key].CopyFrom(value)
    return Grpc("RepositoryModelUnload", request)


def of_every_kind(key: str) -> dict[str, dict[str, pb.ModelRepositoryParameter]]:
    return {
        "bool": {key: pb.ModelRepositoryParameter(bool_param=True)},
        "number": {key: pb.ModelRepositoryParameter(int64_param=1)},
        "text": {key: pb.ModelRepositoryParameter(string_param=json.dumps(CONFIG))},
        "bytes": {key: pb.ModelRepositoryParameter(bytes_param=SOURCE.encode())},
        "no choice": {key: pb.ModelRepositoryParameter()},
    }


def indexed(name: str, *steps: Step) -> Exchange:
    return Exchange(f"index: {name}", steps)


WITH_FILES = {"config": pb.ModelRepositoryParameter(string_param=json.dumps(CONFIG))} | {
    "file:1/model.py": pb.ModelRepositoryParameter(bytes_param=SOURCE.encode())
}

TOPIC = topic(
    "repository",
    "identity",
    [
        *(loaded(name, body) for name, body in {**PARAMETERS, **BODIES}.items()),
        *(loaded(f"config with {name}", {"parameters": {"config": text % SPECIFIED}}) for name, text in LENIENT.items()),
        Exchange("load: a file with a leading slash", (load("identity", CONFIG, {"/1/model.py": FILE}), QUERY, *AGAIN)),
        Exchange("load: an override and none", (load("identity", {**CONFIG, "max_batch_size": 2}), load("identity"), get("/v2/models/identity/config"), unload("identity"), IndexEntry("identity"), *AGAIN)),
        Exchange("load: an override, a failure and none", (load("identity", {**CONFIG, "max_batch_size": 2}), load("identity", {**CONFIG, "max_batch_size": -1}), load("identity"), get("/v2/models/identity/config"), unload("identity"), IndexEntry("identity"), *AGAIN)),
        Exchange("load: files, an override and none", (load("identity", CONFIG, {"7/model.py": FILE}), load("identity", {**CONFIG, "max_batch_size": 2}), load("identity"), get("/v2/models/identity/config"), unload("identity"), IndexEntry("identity"), *AGAIN)),
        Exchange("load: again", (load("identity"), load("identity"), IndexEntry("identity"), QUERY)),
        Exchange("load: files", (load("identity", CONFIG, {"1/model.py": FILE}), QUERY, get("/v2/models/identity"), *AGAIN)),
        Exchange("load: another version's files", (load("identity", CONFIG, {"7/model.py": FILE}), QUERY, get("/v2/models/identity"), *AGAIN)),
        *(
            Exchange(
                f"name {title}/http",
                (post(f"/v2/repository/models/{name}/load", {}), post(f"/v2/repository/models/{name}/unload", {})),
            )
            for title, name in NAMES.items()
        ),
        *(
            Exchange(f"name {title}/grpc", (by_grpc(name), unloaded_by_grpc(name)))
            for title, name in {"empty": "", "unknown": "not_there", "dots": "..", "a space": " ", "dots behind a space": " ..", "a path": "../models", "a folder": "identity/1", "quotes": '"a"'}.items()
        ),
        Exchange("a repository's name/http", (post("/v2/repository/some/models/identity/load", {}), post("/v2/repository/some/models/identity/unload", {}))),
        Exchange("a repository's name/grpc", (by_grpc(repository="some"), unloaded_by_grpc(repository="some"))),
        *(
            Exchange(f"load by gRPC: {key} as {kind}", (by_grpc("identity", "", **parameters), *AGAIN))
            for key in ("config", "file:1/model.py", "unknown")
            for kind, parameters in of_every_kind(key).items()
        ),
        *(
            Exchange(f"unload by gRPC: {key} as {kind}", (unloaded_by_grpc(AWAY, "", **parameters),))
            for key in ("unload_dependents", "unknown")
            for kind, parameters in of_every_kind(key).items()
        ),
        Exchange("load by gRPC: files", (by_grpc("identity", "", **WITH_FILES), QUERY, *AGAIN)),
        Exchange("unload: twice", (unload("identity"), IndexEntry("identity"), unload("identity"), IndexEntry("identity"), QUERY, *AGAIN)),
        Exchange("unload: what is unknown", (unload("not_there"), unloaded_by_grpc("not_there"))),
        Exchange("unload: what was never loaded", (unload(AWAY), IndexEntry(AWAY))),
        *(
            Exchange(f"unload: dependents {value!r}", (post(f"/v2/repository/models/{AWAY}/unload", {"parameters": {"unload_dependents": value}}),))
            for value in (True, False, "true", 1, None)
        ),
        *(Exchange(f"unload: body {name}", (post(f"/v2/repository/models/{AWAY}/unload", body),)) for name, body in BODIES.items()),
        Exchange("unload: an unknown parameter", (post(f"/v2/repository/models/{AWAY}/unload", {"parameters": {"unknown": 1}}),)),
        Exchange("unload: with dependents", (post(f"{PATH}/unload", {"parameters": {"unload_dependents": True}}), IndexEntry("identity"), *AGAIN)),
        Exchange("unload: what cannot be read", (post(f"{PATH}/unload", {"parameters": {"unload_dependents": 1}}), IndexEntry("identity"), *AGAIN)),
        indexed("everything", post("/v2/repository/index")),
        indexed("of a repository", post("/v2/repository/some/index", {})),
        *(indexed(f"ready {name}", post("/v2/repository/index", {"ready": value})) for name, value in READY.items()),
        *(indexed(f"body {name}", Http("/v2/repository/index", body, "POST")) for name, body in BODIES.items()),
        indexed("by gRPC", Grpc("RepositoryIndex", pb.RepositoryIndexRequest())),
        indexed("ready by gRPC", Grpc("RepositoryIndex", pb.RepositoryIndexRequest(ready=True))),
        indexed("of a repository by gRPC", Grpc("RepositoryIndex", pb.RepositoryIndexRequest(repository_name="some"))),
    ],
)  # fmt: skip
