"""Headers that become parameters of inference requests."""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.exchange import Exchange, Grpc, topic
from tests.conformance.inference import Inference, given, streamed

INFERENCE = Inference("echo_request", {"IN": given("INT32", 7)}, outputs=("REQUEST",))
Headers = tuple[tuple[str, str], ...]
HTTP: dict[str, Headers] = {
    "none": (),
    "one that matches": (("x-a", "1"),),
    "capitals": (("X-Capital-A", "1"),),
    "in the middle": (("not-x-a", "1"),),
    "one that does not": (("y-a", "1"),),
    "several": (("x-b", "1"), ("y", "2"), ("x-a", "3")),
    "twice": (("x-a", "1"), ("x-a", "2")),
    "twice in different cases": (("x-a", "1"), ("X-A", "2")),
    "quotes and backslashes": (("x-a", 'This is a "quoted" string with a backslash\\ and a comma, too'),),
    "spaces inside": (("x-a", "one  two"),),
    "unicode": (("x-a", "gr\xc3\xb6\xc3\x9fe"),),  # the bytes of UTF-8
    "a number": (("x-a", "17"),),
    "the pattern is no whole name": (("forwarded-by-its-end", "1"),),
    **{
        f"reserved: {name}": ((name, "1"),)
        for name in (
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output",
            "triton_enable_empty_final_response", "triton_final_response", "triton_own",
        )
    },
    "reserved in capitals": (("Priority", "1"), ("TRITON_x", "2")),
    "nearly reserved": (("timeouts", "1"), ("my_triton_x", "2")),
    "reserved behind another": (("x-a", "1"), ("timeout", "1")),
}  # fmt: skip
GRPC = {
    name: given
    for name, given in HTTP.items()
    if name not in {"capitals", "unicode", "twice in different cases", "reserved in capitals"}
}
WITH = {"x-a": "body", "q": 1}


def over_http(name: str, headers: Headers, inference: Inference = INFERENCE) -> Exchange:
    call = inference.json()
    return Exchange(f"{name}/http", (replace(call, headers=(*call.headers, *headers)),))


def over_grpc(name: str, headers: Headers, inference: Inference = INFERENCE) -> Exchange:
    return Exchange(f"{name}/grpc", (Grpc("ModelInfer", inference.message(), metadata=headers),))


TOPIC = topic(
    "header_forwarding",
    "echo_request",
    [
        *(over_http(name, headers) for name, headers in HTTP.items()),
        *(over_grpc(name, headers) for name, headers in GRPC.items()),
        *(
            Exchange(
                f"{name}/stream",
                (
                    replace(
                        streamed(INFERENCE.named(id="1"), INFERENCE.named(id="2")), metadata=headers
                    ),
                ),
            )
            for name, headers in GRPC.items()
        ),
        *(
            make(
                "a parameter of the same name",
                (("x-a", "header"), ("x-b", "1")),
                INFERENCE.named(parameters=WITH),
            )
            for make in (over_http, over_grpc)
        ),
        *(
            make(
                "reserved and a wrong parameter",
                (("timeout", "1"),),
                INFERENCE.named(parameters={"triton_x": 1}),
            )
            for make in (over_http, over_grpc)
        ),
        Exchange(
            "binary/http",
            (replace(INFERENCE.binary(), headers=(*INFERENCE.binary().headers, ("x-a", "1"))),),
            {"echo_request": 1},
        ),
    ],
    flags=(
        "--http-header-forward-pattern=^x-|^not-X|^FORWARDED|quence_|prior|timeout|^headers|binary_data|triton_",
        "--grpc-header-forward-pattern=^x-|^not-X|^FORWARDED|quence_|prior|timeout|^headers|binary_data|triton_",
    ),
)
