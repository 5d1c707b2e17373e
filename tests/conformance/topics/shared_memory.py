"""Shared memory: regions, and tensors in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.exchange import (
    MEMORY_KEY,
    Exchange,
    Grpc,
    Http,
    SharedMemorySteps,
    Stream,
    get,
    post,
    topic,
)
from tests.conformance.inference import given
from tritonpy_protos import grpc_service_pb2 as pb

LEFT, RIGHT = np.array([1, 2, 3, 4], np.float32), np.array([0.5, 0.25, -3, 1e9], np.float32)
CONTENT = LEFT.tobytes() + RIGHT.tobytes()
TEXT = given("BYTES", "one", "", "zwölf").wire()
PAGE = 4096
OTHER_KEY = f"/{MEMORY_KEY}"  # of the same memory
HANDLE = {"b64": "A" * 86 + "=="}


def path(kind: str, action: str, region: str = "") -> str:
    return (
        f"/v2/{kind}sharedmemory/region/{region}/{action}"
        if region
        else f"/v2/{kind}sharedmemory/{action}"
    )


def register(region: str = "r", body: Any = None, **changes: Any) -> Http:
    return post(
        path("system", "register", region),
        body or {"key": MEMORY_KEY, "byte_size": PAGE, **changes},
    )


def register_grpc(region: str = "r", **changes: Any) -> Grpc:
    fields = {"key": MEMORY_KEY, "byte_size": PAGE, **changes}
    return Grpc(
        "SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(name=region, **fields)
    )


def status(kind: str = "system", region: str = "") -> Http:
    return get(path(kind, "status", region))


def status_grpc(region: str = "") -> Grpc:
    return Grpc("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(name=region))


def unregister_grpc(region: str = "") -> Grpc:
    return Grpc("SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name=region))


def place(offset: int | None = 0, byte_size: int | None = 16, region: Any = "r") -> dict[str, Any]:
    """Return the parameters of a tensor in a region, without those that are None."""
    given = {
        "shared_memory_region": region,
        "shared_memory_offset": offset,
        "shared_memory_byte_size": byte_size,
    }
    return {key: value for key, value in given.items() if value is not None}


def add(
    first: dict[str, Any], outputs: dict[str, dict[str, Any]] | None = None, model: str = "add_sub"
) -> Http:
    """Return a request whose first input has these parameters; the second one is at offset 16.

    `outputs` are parameters by name.
    """
    inputs = [
        {"name": name, "datatype": "FP32", "shape": [4], "parameters": parameters}
        for name, parameters in (("INPUT0", first), ("INPUT1", place(16)))
    ]
    body: dict[str, Any] = {"inputs": inputs}
    if outputs is not None:
        body["outputs"] = [
            {"name": name, "parameters": parameters} if parameters else {"name": name}
            for name, parameters in outputs.items()
        ]
    return post(f"/v2/models/{model}/infer", body)


def message(
    first: dict[str, Any],
    outputs: dict[str, dict[str, Any]] | None = None,
    model: str = "add_sub",
    **fields: Any,
) -> pb.ModelInferRequest:
    """Return the same as a message."""
    request = pb.ModelInferRequest(model_name=model, **fields)
    for name, parameters in (("INPUT0", first), ("INPUT1", place(16))):
        _parameters(request.inputs.add(name=name, datatype="FP32", shape=[4]), parameters)
    for name, parameters in (outputs or {}).items():
        _parameters(request.outputs.add(name=name), parameters)
    return request


def _parameters(tensor: Any, parameters: dict[str, Any]) -> None:
    for key, value in parameters.items():
        setattr(
            tensor.parameters[key],
            "string_param" if isinstance(value, str) else "int64_param",
            value,
        )


def grpc(*arguments: Any, **fields: Any) -> Grpc:
    return Grpc("ModelInfer", message(*arguments, **fields))


def shared_memory_steps(
    name: str, *steps: Http | Grpc | Stream, content: bytes = CONTENT, counted: bool = False
) -> Exchange:
    return Exchange(name, (SharedMemorySteps(content, steps),), {"add_sub": 1} if counted else {})


def both(name: str, *arguments: Any, counted: bool = False) -> list[Exchange]:
    """Return one inference by each protocol, with the whole memory registered as `r`."""
    return [
        shared_memory_steps(f"{name}/http", register(), add(*arguments), counted=counted),
        shared_memory_steps(f"{name}/grpc", register_grpc(), grpc(*arguments), counted=counted),
    ]


def text(offset: int, byte_size: int, output: dict[str, Any]) -> Http:
    given = {
        "name": "IN_STRING",
        "datatype": "BYTES",
        "shape": [3],
        "parameters": place(offset, byte_size),
    }
    return post(
        "/v2/models/datatypes/infer",
        {"inputs": [given], "outputs": [{"name": "OUT_STRING", "parameters": output}]},
    )


def text_grpc(offset: int, byte_size: int, output: dict[str, Any]) -> Grpc:
    request = pb.ModelInferRequest(model_name="datatypes")
    _parameters(
        request.inputs.add(name="IN_STRING", datatype="BYTES", shape=[3]), place(offset, byte_size)
    )
    _parameters(request.outputs.add(name="OUT_STRING"), output)
    return Grpc("ModelInfer", request)


REGISTRATIONS: dict[str, Any] = {
    "no body": b"",
    "no JSON": b"{",
    "no object": [],
    "nothing": {},
    "no size": {"key": MEMORY_KEY},
    "key is a number": {"key": 1, "byte_size": 8},
    "size is text": {"key": MEMORY_KEY, "byte_size": "8"},
    "negative size": {"key": MEMORY_KEY, "byte_size": -8},
    "size beyond 64 bits": {"key": MEMORY_KEY, "byte_size": 2**64},
    "negative offset": {"key": MEMORY_KEY, "byte_size": 8, "offset": -1},
    "slash in front": {"key": f"/{MEMORY_KEY}", "byte_size": 8},
    "slashes in front": {"key": f"//{MEMORY_KEY}", "byte_size": 8},
    "not there": {"key": "/conformance-not-there", "byte_size": 8},
    "path": {"key": f"../shm/{MEMORY_KEY}", "byte_size": 8},
    "dots": {"key": "..", "byte_size": 8},
    "larger than the memory": {"key": MEMORY_KEY, "byte_size": PAGE + 1},
    "offset beyond the memory": {"key": MEMORY_KEY, "byte_size": 8, "offset": PAGE},
    "sum beyond 64 bits": {"key": MEMORY_KEY, "byte_size": PAGE, "offset": 2**64 - PAGE},
    "size of nothing": {"key": MEMORY_KEY, "byte_size": 0},
    "odd offset": {"key": MEMORY_KEY, "byte_size": 8, "offset": 8},
    "reserved": {"key": "/triton_python_backend_shm_region_1", "byte_size": 8},
    "no key": {"key": "/", "byte_size": 8},
}
PLACES: dict[str, dict[str, Any]] = {
    "another offset": place(8),
    "no offset": place(None),
    "the last bytes": place(PAGE - 16),
    "offset beyond": place(PAGE),
    "end beyond": place(PAGE - 8),
    "unknown region": place(region="gone"),
    "odd offset": place(3),
}

TOPIC = topic(
    "shared memory",
    "add_sub datatypes repeat",
    [
        *(
            shared_memory_steps(
                f"register {name}", post(path("system", "register", "r"), body), status()
            )
            for name, body in REGISTRATIONS.items()
        ),
        shared_memory_steps(
            "register without a name",
            post(path("system", "register"), {"key": MEMORY_KEY, "byte_size": 8}),
        ),
        shared_memory_steps("register twice", register(), register(), register_grpc(), status()),
        shared_memory_steps(
            "two regions",
            register("z"),
            register_grpc("a", byte_size=8, key=OTHER_KEY),
            status(),
            status_grpc(),
        ),
        shared_memory_steps(
            "name with an escape", register("a%20b"), status(), status_grpc("a%20b")
        ),
        shared_memory_steps(
            "two regions of one memory",
            register("z"),
            register_grpc("a", byte_size=8),
            status(),
            status_grpc(),
        ),
        shared_memory_steps(
            "status of one", register(), status(region="r"), status_grpc("r"), status("cuda", "r")
        ),
        shared_memory_steps(
            "unregister one",
            register("a"),
            register("b", key=OTHER_KEY),
            post(path("system", "unregister", "a")),
            status(),
        ),
        shared_memory_steps(
            "unregister one by gRPC",
            register("a"),
            register("b", key=OTHER_KEY),
            unregister_grpc("a"),
            status_grpc(),
        ),
        shared_memory_steps(
            "unregister all by gRPC",
            register("a"),
            register("b", key=OTHER_KEY),
            unregister_grpc(),
            status_grpc(),
        ),
        shared_memory_steps(
            "unregister the other kind",
            register(),
            post(path("cuda", "unregister", "r")),
            post(path("cuda", "unregister")),
            status(),
        ),
        Exchange(
            "unregister what is not there",
            (post(path("system", "unregister", "gone")), unregister_grpc("gone")),
        ),
        Exchange(
            "status of what is not there",
            (status(region="gone"), status("cuda", "gone"), status_grpc("gone")),
        ),
        Exchange("no region", (status(), status("cuda"), status_grpc())),
        Exchange(
            "register nothing by gRPC",
            (
                register_grpc(key="/conformance-not-there", byte_size=8),
                register_grpc(key="../shm/x", byte_size=8),
                Grpc("CudaSharedMemoryStatus", pb.CudaSharedMemoryStatusRequest(name="gone")),
                Grpc("CudaSharedMemoryUnregister", pb.CudaSharedMemoryUnregisterRequest()),
            ),
        ),
        Exchange(
            "memory of a GPU without one",
            (
                post(
                    path("cuda", "register", "c"),
                    {"raw_handle": HANDLE, "device_id": 0, "byte_size": 8},
                ),
                post(path("cuda", "register", "c"), {}),
                post(path("cuda", "register", "c")),
                post(
                    path("cuda", "register", "c"),
                    {"raw_handle": {"b64": "AAAA"}, "device_id": 0, "byte_size": 8},
                ),
                post(
                    path("cuda", "register", "c"),
                    {"raw_handle": "AAAA", "device_id": 0, "byte_size": 8},
                ),
                post(path("cuda", "register", "c"), {"raw_handle": HANDLE, "byte_size": 8}),
                post(path("cuda", "register", "c"), {"raw_handle": HANDLE, "device_id": 0}),
                post(path("cuda", "register"), {}),
                Grpc(
                    "CudaSharedMemoryRegister",
                    pb.CudaSharedMemoryRegisterRequest(name="c", raw_handle=bytes(64), byte_size=8),
                ),
            ),
        ),
        Exchange(
            "methods and paths",
            (
                post(path("system", "status")),
                get(path("system", "register")),
                get(path("cuda", "unregister", "r")),
                Http(path("system", "unregister"), method="PUT"),
                get("/v2/systemsharedmemory"),
                get("/v2/systemsharedmemory/other"),
                get("/v2/systemsharedmemory/region/r"),
                get("/v2/cudasharedmemory/region/r/other"),
            ),
        ),
        *both("inputs", place(), {"OUTPUT0": {}}, counted=True),
        *both(
            "outputs too", place(), {"OUTPUT0": place(64), "OUTPUT1": place(128, 100)}, counted=True
        ),
        *both("one output of two", place(), {"OUTPUT1": place(64), "OUTPUT0": {}}, counted=True),
        *both("output over the input", place(), {"OUTPUT0": place()}, counted=True),
        *(
            exchange
            for name, where in PLACES.items()
            for exchange in both(f"input at {name}", where, {"OUTPUT0": {}})
        ),
        *(
            exchange
            for name, where in PLACES.items()
            for exchange in both(f"output at {name}", place(), {"OUTPUT0": where})
        ),
        *both("input of too few bytes", place(0, 12), {"OUTPUT0": {}}),
        *both("output of too few bytes", place(), {"OUTPUT0": place(64, 15)}),
        *both(
            "the second output of too few bytes",
            place(),
            {"OUTPUT0": place(64), "OUTPUT1": place(128, 1)},
        ),
        *both("unknown model", place(region="gone"), None, "nobody"),
        *both("decoupled model", place(region="gone"), None, "repeat"),
        shared_memory_steps(
            "wrong parameters over HTTP",
            register(),
            *(
                add(place(**{name: value}), {})
                for name in ("offset", "byte_size")
                for value in (-1, "8", 0.5, 2**64)
            ),
            add(place(region=5), {}),
            add({**place(), "binary_data_size": 16}, {}),
            add(place(), {"OUTPUT0": {**place(), "classification": 1}}),
            add(place(), {"OUTPUT0": {**place(), "binary_data": True}}),
            add(place(), {"OUTPUT0": {**place(64), "binary_data": False}}),
        ),
        shared_memory_steps(
            "wrong parameters over gRPC",
            register_grpc(),
            *(
                grpc(place(**{name: value}))
                for name, value in (("offset", "8"), ("byte_size", "8"), ("offset", -1))
            ),
            grpc(place(byte_size=None)),
            grpc({"shared_memory_offset": 8}),
            grpc({"shared_memory_byte_size": 8}),
            grpc(place(region=5)),
            grpc(place(), {"OUTPUT0": place(byte_size=None)}),
            grpc(place(), {"OUTPUT0": {**place(), "classification": 1}}),
        ),
        shared_memory_steps("text", register(), text(0, len(TEXT), place(512, 512)), content=TEXT),
        shared_memory_steps(
            "text that is cut off",
            register(),
            text_grpc(0, len(TEXT) - 1, place(512, 512)),
            content=TEXT,
        ),
        shared_memory_steps(
            "text that does not fit",
            register(),
            text(0, len(TEXT), place(512, len(TEXT) - 1)),
            content=TEXT,
        ),
        shared_memory_steps(
            "stream",
            register(),
            Stream(
                (
                    message(place(), {"OUTPUT0": place(64)}, id="1"),
                    message(place(region="gone"), id="2"),
                    message(place(), {"OUTPUT0": place(128, 8)}, id="3"),
                    message(place(), {"OUTPUT0": place(192)}, id="4"),
                )
            ),
        ),
        shared_memory_steps(
            "unregistered before", register(), unregister_grpc("r"), add(place(), {}), grpc(place())
        ),
    ],
)
