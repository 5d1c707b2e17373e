"""Streams: order, errors in between, the empty final response, and errors that end them."""

from __future__ import annotations

import dataclasses

from tests.conformance.exchange import Exchange, Stream, topic
from tests.conformance.inference import Inference, given, streamed
from tritonpy_protos import grpc_service_pb2 as pb

ENDING = (("triton_grpc_error", "true"),)
ONE = Inference("identity", {"IN": given("INT32", 1, 2)}, id="one")
UNKNOWN = Inference("not_there", {"IN": given("INT32", 1)}, id="unknown")
WRONG = Inference("identity", {"IN": given("FP32", 1)}, id="wrong")
FAILING = Inference("trouble", {"WHAT": given("BYTES", "error_unicode")}, id="failing")
MANY = Inference("square", {"IN": given("INT32", 3, shape=(1, 1))}, id="many")
NONE = Inference("square", {"IN": given("INT32", 0, shape=(1, 1))}, id="none")
EMPTY = {"triton_enable_empty_final_response": True}
WITHOUT_DATA = pb.ModelInferRequest(model_name="identity", id="without data")
WITHOUT_DATA.inputs.add(name="IN", datatype="INT32", shape=[1])
CHOICES: dict[str, pb.InferParameter] = {
    "false": pb.InferParameter(bool_param=False),
    "number": pb.InferParameter(int64_param=1),
    "text": pb.InferParameter(string_param="true"),
    "no choice": pb.InferParameter(),
}


def ending(stream: Stream, value: str = "true") -> Stream:
    return dataclasses.replace(stream, metadata=(("triton_grpc_error", value),))


def empty_final(choice: pb.InferParameter) -> Stream:
    message = MANY.message()
    message.parameters["triton_enable_empty_final_response"].CopyFrom(choice)
    return Stream((message,))


def numbered(*inferences: Inference) -> tuple[Inference, ...]:
    return tuple(one.named(id=f"{number} {one.id}") for number, one in enumerate(inferences))


BROKEN = {
    "unknown model": UNKNOWN,
    "wrong datatype": WRONG,
    "no data": WITHOUT_DATA,
    "a model's error": FAILING,
    "unknown version": ONE.named(version="9"),
    "a bad version": ONE.named(version="x"),
    "a reserved parameter": ONE.named(parameters={"triton_own": 1}),
    "an unknown output": ONE.named(outputs=("NOT_THERE",)),
    "no name": ONE.named(model=""),
}


def message(broken: Inference | pb.ModelInferRequest) -> pb.ModelInferRequest:
    return broken if isinstance(broken, pb.ModelInferRequest) else broken.message()


TOPIC = topic(
    "streams",
    "identity square trouble batched",
    [
        Exchange("nothing", (Stream(()),)),
        Exchange("one", (streamed(ONE),), {"identity": 1}),
        Exchange("ten of one id", (streamed(*[ONE.named(inputs={"IN": given("INT32", number)}) for number in range(10)]),)),
        Exchange("without ids", (streamed(ONE.named(id=""), ONE.named(id="")),)),
        Exchange("models that differ", (streamed(ONE, MANY, NONE),)),
        *(Exchange(f"{name} alone", (Stream((message(broken),)),)) for name, broken in BROKEN.items()),
        *(Exchange(f"{name} between others", (Stream((ONE.named(id="before").message(), message(broken), ONE.named(id="after").message())),)) for name, broken in BROKEN.items()),
        *(Exchange(f"{name} ends the stream", (ending(Stream((message(broken),))),)) for name, broken in BROKEN.items()),
        *(Exchange(f"triton_grpc_error is {value!r}", (ending(streamed(UNKNOWN), value),)) for value in ("false", "", "True", "1", "yes")),
        Exchange("no error where one would end it", (ending(streamed(ONE, MANY)),)),
        Exchange("empty final answer", (streamed(MANY.named(parameters=EMPTY)),)),
        Exchange("nothing but an empty final answer", (streamed(NONE.named(parameters=EMPTY)),)),
        Exchange("no answer at all", (streamed(NONE),)),
        Exchange("an empty final answer of a model that answers once", (streamed(ONE.named(parameters=EMPTY)),)),
        Exchange("an empty final answer outside a stream", (ONE.named(parameters=EMPTY).grpc(),)),
        *(Exchange(f"empty final answer {name}", (empty_final(choice),)) for name, choice in CHOICES.items()),
        Exchange("a decoupled model outside a stream", (MANY.grpc(), MANY.binary(), MANY.json())),
        Exchange("a batch of a decoupled model", (streamed(MANY.named(inputs={"IN": given("INT32", 2, 2, shape=(2, 1))})),)),
        Exchange("too large a batch of a decoupled model", (streamed(MANY.named(inputs={"IN": given("INT32", *[1] * 5, shape=(5, 1))})),)),
        Exchange("outputs by name", (streamed(MANY.named(outputs=("OUT",))),)),
        Exchange("an unknown output of a decoupled model", (streamed(MANY.named(outputs=("NOT_THERE",))),)),
        Exchange("four that run together", (streamed(*numbered(*[Inference("batched", {"IN": given("INT32", 1, 2, shape=(1, 2))})] * 4)),), {"batched": 4}),
    ],
)  # fmt: skip
