"""Implicit state, as far as Python models support it: they can read it but not change it."""

from __future__ import annotations

from typing import Any

from tests.conformance.exchange import Exchange, IndexEntry, get, load, topic, unload
from tests.conformance.inference import Inference, both, given

STATE = {"input_name": "SIN", "output_name": "SOUT", "data_type": "TYPE_FP32", "dims": [2]}
INITIAL = {"name": "initial", "data_type": "TYPE_FP32", "dims": [2]}
STATES: dict[str, dict[str, Any]] = {
    "no data": {**STATE, "initial_state": [INITIAL]},
    "a file that is too short": {
        **STATE,
        "dims": [20],
        "initial_state": [{**INITIAL, "dims": [20], "data_file": "numbers"}],
    },
    "a file that is not there": {**STATE, "initial_state": [{**INITIAL, "data_file": "none"}]},
    "another type": {
        **STATE,
        "initial_state": [{**INITIAL, "data_type": "TYPE_INT32", "zero_data": True}],
    },
    "another size": {**STATE, "initial_state": [{**INITIAL, "dims": [3], "zero_data": True}]},
    "other dimensions": {
        **STATE,
        "initial_state": [{**INITIAL, "dims": [2, 1], "zero_data": True}],
    },
    "a variable size": {**STATE, "initial_state": [{**INITIAL, "dims": [-1], "zero_data": True}]},
    "no name": {**STATE, "initial_state": [{**INITIAL, "name": "", "zero_data": True}]},
    "two": {**STATE, "initial_state": [INITIAL, INITIAL]},
    "memory that grows in two buffers": {**STATE, "use_growable_memory": True},
    "memory that grows on the CPU": {
        **STATE,
        "use_growable_memory": True,
        "use_same_buffer_for_input_output": True,
    },
}


def refused(name: str, state: dict[str, Any]) -> Exchange:
    """Return the exchange of a load with such a state."""
    config = {
        "backend": "python",
        "max_batch_size": 4,
        "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_STRING", "dims": [-1]}],
        "sequence_batching": {"state": [state]},
    }
    return Exchange(
        f"load: {name}",
        (
            load("remembering_badly", config),
            IndexEntry("remembering_badly"),
            unload("remembering_badly"),
        ),
    )


def counting(number: int, **flags: bool) -> Inference:
    sequence = {"sequence_id": 11, **{f"sequence_{name}": value for name, value in flags.items()}}
    return Inference(
        "remembering", {"IN": given("INT32", number, shape=(1, 1))}, parameters=sequence
    )


TOPIC = topic(
    "implicit state",
    "remembering",
    [
        both("a start", counting(1, start=True, end=True)),
        Exchange(
            "a sequence",
            (
                counting(1, start=True).binary(),
                counting(2).grpc(),
                counting(3, end=True).binary(),
                counting(4).binary(),
            ),
        ),
        Exchange(
            "a state is no output",
            (counting(1, start=True, end=True).named(outputs=("NEW_ZERO",)).binary(),),
        ),
        Exchange(
            "a state is no input",
            (
                counting(1, start=True, end=True)
                .named(inputs={"ZERO": given("INT32", 1, 2, shape=(1, 2))})
                .binary(),
            ),
        ),
        Exchange("metadata", (get("/v2/models/remembering"), get("/v2/models/remembering/config"))),
        *(refused(name, state) for name, state in STATES.items()),
    ],
)
