"""Ensembles of Python models."""

from __future__ import annotations

from tests.conformance.exchange import Concurrent, Exchange, get, topic
from tests.conformance.inference import Inference, both, given, streamed, text

EMPTY_FINAL = {"triton_enable_empty_final_response": True}
FLOATS = {"A": given("FP32", 1, 2, 3, 4), "B": given("FP32", 5, 6, 7, 8)}
MODELS = (
    "add_sub raw_batched raw_open echo_request trouble passing_floats repeat pausing joined_line joined_diamond joined_nested joined_read_twice "
    "joined_batches joined_with_and_without_batches joined_echo joined_trouble joined_repeat joined_repeat_last "
    "sequenced_alone joined_sequence"
)
TROUBLES = (
    "fine", "raises", "raises_lines", "error:NOT_FOUND", "error:UNAVAILABLE", "error:INVALID_ARG", "error_without_text", "no_list:text", "too_few",
    "wrong_element:number", "missing_output", "no_outputs", "extra_output", "wrong_type", "wrong_shape", "empty_output",
)  # fmt: skip


def pair(model: str, **changes: object) -> Inference:
    return Inference(model, FLOATS).named(**changes)


def counted(name: str, inference: Inference, **others: int) -> list[Exchange]:
    """Return the exchange over both protocols; statistics of all its models are compared."""
    statistics = {inference.model: 1, **others}
    return [
        Exchange(f"{name}/http", (inference.binary(),), statistics),
        Exchange(f"{name}/grpc", (inference.grpc(),), statistics),
    ]


def batch(model: str, rows: int) -> Inference:
    return Inference(model, {"IN": given("INT32", *range(4 * rows), shape=(rows, 2, 2))})


def stream(name: str, model: str, *values: int, **changes: object) -> Exchange:
    inference = Inference(model, {"IN": given("INT32", *values)}, id="only").named(**changes)
    return Exchange(name, (streamed(inference),), {model: 1, "repeat": 1})


ECHO = Inference("joined_echo", {"IN": given("INT32", 1)})
MORE = {"IN": given("INT32", 1), "PERHAPS": given("INT32", 2)}
PARAMETERS = {"number": 3}  # one: the real server returns several in any order
SEQUENCE = [
    {"sequence_id": 7, **more} for more in ({"sequence_start": True}, {}, {"sequence_end": True})
]
TOPIC = topic(
    "ensembles",
    MODELS,
    [
        counted("line", pair("joined_line"), add_sub=2),
        Exchange("line/json", (pair("joined_line").json(),)),
        counted("line with an id", pair("joined_line", id="x"), add_sub=2),
        counted("diamond", pair("joined_diamond", outputs=("MINUS",)), add_sub=4),
        Exchange(
            "diamond/both outputs", (pair("joined_diamond").binary(), pair("joined_diamond").grpc())
        ),
        counted("nested", pair("joined_nested"), joined_line=1, joined_diamond=1, add_sub=6),
        Exchange(
            "read twice", (pair("joined_read_twice").binary(), pair("joined_read_twice").grpc())
        ),
        *(
            Exchange(
                f"read twice/{name} alone", (pair("joined_read_twice", outputs=(name,)).grpc(),)
            )
            for name in ("OUT", "MID")
        ),
        *(
            counted(f"batch of {rows}", batch("joined_batches", rows), raw_batched=2)
            for rows in (1, 3)
        ),
        both("batch of 5", batch("joined_batches", 5)),
        counted(
            "with and without batches/1",
            batch("joined_with_and_without_batches", 1),
            raw_open=1,
            raw_batched=1,
        ),
        both("with and without batches/2", batch("joined_with_and_without_batches", 2)),
        both("nothing optional", ECHO),
        both("something optional", ECHO.named(inputs=MORE)),
        both("nothing required", ECHO.named(inputs={"PERHAPS": given("INT32", 2)})),
        both("parameters", ECHO.named(parameters=PARAMETERS, id="x")),
        both("priority and time-out", ECHO.named(parameters={"priority": 3, "timeout": 5_000_000})),
        both("sequence", ECHO.named(parameters={"sequence_id": 7, "sequence_start": True})),
        both(
            "end of a sequence",
            ECHO.named(
                parameters={"sequence_id": 7, "sequence_end": True, "sequence_start": False}
            ),
        ),
        both(
            "sequence with a text",
            ECHO.named(parameters={"sequence_id": "seven", "sequence_end": True}),
        ),
        both("wrong shape", ECHO.named(inputs={"IN": given("INT32", 1, 2)})),
        both("unknown output", ECHO.named(outputs=("NOT_THERE",))),
        *(
            Exchange(
                f"trouble {what}",
                (inference.binary(), inference.grpc()),
                {"joined_trouble": 2, "trouble": 2},
            )
            for what in TROUBLES
            for inference in [
                Inference("joined_trouble", {"WHAT": text(what)}, id="t", outputs=("OUT",))
            ]
        ),
        stream("repeat", "joined_repeat", 4, 2, 0, 1),
        stream(
            "repeat with empty final response", "joined_repeat", 4, 2, 0, 1, parameters=EMPTY_FINAL
        ),
        stream("repeat nothing", "joined_repeat"),
        stream("repeat nothing with empty final response", "joined_repeat", parameters=EMPTY_FINAL),
        stream("repeat last", "joined_repeat_last", 4, 2, outputs=("OUT",)),
        stream(
            "repeat last with empty final response",
            "joined_repeat_last",
            4,
            2,
            outputs=("OUT",),
            parameters=EMPTY_FINAL,
        ),
        Exchange(
            "an ensemble that is not decoupled/stream",
            (
                streamed(
                    pair("joined_line", id="a"), pair("joined_line", id="b", parameters=EMPTY_FINAL)
                ),
                streamed(
                    Inference(
                        "joined_trouble", {"WHAT": text("raises")}, id="c", parameters=EMPTY_FINAL
                    )
                ),
            ),
        ),
        *(
            Exchange(
                f"a member with sequences/{protocol}",
                tuple(
                    getattr(
                        Inference(
                            "joined_sequence", {"IN": given("INT32", number)}, parameters=parameters
                        ),
                        protocol,
                    )()
                    for number, parameters in enumerate(SEQUENCE)
                ),
                {"joined_sequence": 3, "sequenced_alone": 3},
            )
            for protocol in ("binary", "grpc")
        ),
        Exchange(
            "a member with sequences and no start",
            (
                Inference(
                    "joined_sequence", {"IN": given("INT32", 1)}, parameters={"sequence_id": 9}
                ).binary(),
                Inference("joined_sequence", {"IN": given("INT32", 1)}).grpc(),
            ),
        ),
        Exchange(
            "unary on a decoupled ensemble",
            tuple(
                step
                for one in [Inference("joined_repeat", {"IN": given("INT32", 1)})]
                for step in (one.binary(), one.grpc())
            ),
        ),
        Exchange(
            "many at once",
            (Concurrent(tuple(pair("joined_line", id=str(number)).grpc() for number in range(8))),),
        ),
        *(
            Exchange(
                f"descriptions of {model}",
                (get(f"/v2/models/{model}"), get(f"/v2/models/{model}/config")),
            )
            for model in (
                "joined_line",
                "joined_batches",
                "joined_echo",
                "joined_repeat",
                "joined_nested",
            )
        ),
    ],
)
