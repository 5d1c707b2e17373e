from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tritonpy_testing import (
    InferenceServerException,
    InferInput,
    InferRequestedOutput,
    InProcessClient,
    ModelRepository,
)

from .isolated import isolating
from .serving import ToyPlugin
from .wrong import CASES, Wrong

CONFIG = """
backend: "wrong"
max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
output { name: "MORE" data_type: TYPE_FP32 dims: 1 }
parameters { key: "isolation" value { string_value: "%s" } }
"""
NO_ARRAY = "expected an array of FP32, as its configuration says"
RESPONSES = "expected a sequence of 1 InferResponse objects, one for each request of the batch"
EXPECTED = {
    "fine": "",
    "misspelled": "model '%s' returned no output 'OUT', it returned: 'OUTT', 'MORE'; expected: 'OUT', 'MORE'",
    "empty": "model '%s' returned no output 'OUT', it returned: nothing; expected: 'OUT', 'MORE'",
    "None": "model '%s' returned None, expected a mapping from the names of outputs to arrays: 'OUT', 'MORE'",
    "list": "model '%s' returned a value of type 'list', expected a mapping from the names of outputs to arrays: "
    "'OUT', 'MORE'",
    "array": "model '%s' returned an array of float32 with shape [1,1], expected a mapping from the names of outputs "
    "to arrays: 'OUT', 'MORE'",
    "None inside": f"model '%s' returned None as output 'OUT', {NO_ARRAY}",
    "uneven": f"model '%s' returned a value of type 'list' as output 'OUT', {NO_ARRAY}: setting an array element ",
    "text": "model '%s' returned output 'OUT' as BYTES, its configuration says FP32",
    "fp64": "model '%s' returned output 'OUT' as FP64, its configuration says FP32",
    "KeyError": "KeyError: 'XX'",
    "RuntimeError": "RuntimeError: it is broken",
    "execute returns": "execute() of the backend returned a value of type 'list', expected None: send "
    "responses with batch.respond()",
    "responds None": f"the backend responded with a value of type 'NoneType', {RESPONSES}",
    "responds too little": f"the backend sent 0 responses, {RESPONSES}",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessClient]:
    repository = ModelRepository(tmp_path_factory.mktemp("wrong"))
    for isolation in ("thread", "process"):
        repository.add(isolation, CONFIG % isolation)
    with isolating(repository, ToyPlugin({"wrong": Wrong})) as server:
        yield InProcessClient(server)


def outcome(client: InProcessClient, model: str, case: str, *outputs: str) -> str:
    """Return the text of the error, or an empty text."""
    tensor = InferInput("IN", [1, 1], "FP32").set_data_from_numpy(
        np.full((1, 1), CASES.index(case), np.float32)
    )
    try:
        client.infer(
            model, [tensor], outputs=[InferRequestedOutput(name) for name in outputs] or None
        )
    except InferenceServerException as error:
        return str(error.message())
    return ""


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("model", ["thread", "process"])
def test_the_error_names_the_returned_and_the_expected_value(
    client: InProcessClient, model: str, case: str
) -> None:
    expected = EXPECTED[case].replace("%s", model)
    found = outcome(client, model, case)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("model", ["thread", "process"])
def test_an_output_that_was_not_requested_may_be_missing(
    client: InProcessClient, model: str
) -> None:
    assert outcome(client, model, "misspelled", "MORE") == ""
    assert outcome(client, model, "misspelled", "OUT") == EXPECTED["misspelled"] % model
