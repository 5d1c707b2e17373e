"""Large BYTES inputs, which only the worker validates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tritonpy import CallbackSink, InferRequest, InferResponse, Tensor, encode_strings

from .serving import served, wait_for, write_model

LENGTHS = """
def execute(self, requests):
    return [
        pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.vectorize(len)(r.inputs()[0].as_numpy()).astype(np.int64))])
        for r in requests
    ]
"""
CONFIG = """
backend: "python" max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 100000 }
input { name: "IN" data_type: TYPE_STRING dims: -1 } output { name: "OUT" data_type: TYPE_INT64 dims: -1 }
"""
COUNT = 20_000
WORDS = [b"x" * (number % 9) for number in range(COUNT)]


def infer(server, data, count=COUNT, name="7"):
    answers: list[InferResponse] = []
    tensor = Tensor("IN", "BYTES", (1, count), data)
    sink = CallbackSink(lambda _, response: answers.append(response))
    server.engine.infer(InferRequest("words", {"IN": tensor}, sink, id=name))
    return answers


def test_large_strings_arrive_completely(tmp_path: Path) -> None:
    write_model(tmp_path, "words", LENGTHS, CONFIG)
    with served(tmp_path) as server:
        answers = infer(server, encode_strings(WORDS))
        wait_for(lambda: answers)
        assert answers[0].outputs[0].data.tolist() == [[len(word) for word in WORDS]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encode_strings(WORDS)[:-1], "incomplete string data for inference input 'IN'"),
        (
            np.concatenate([encode_strings(WORDS), np.zeros(3, np.uint8)]),
            "incomplete string length indicator",
        ),
        (encode_strings([*WORDS, b"more"]), f"unexpected number of string elements {COUNT + 1}"),
        (
            encode_strings(WORDS[:-1]),
            f"expected {COUNT} string elements for inference input 'IN' for model 'words'",
        ),
    ],
)
def test_only_the_malformed_request_of_a_batch_is_rejected(tmp_path: Path, data, text: str) -> None:
    write_model(tmp_path, "words", LENGTHS, CONFIG)
    with served(tmp_path) as server:
        good, bad, also_good = (
            infer(server, encode_strings(WORDS)),
            infer(server, data),
            infer(server, encode_strings(WORDS)),
        )
        wait_for(lambda: good and bad and also_good)
        assert bad[0].error is not None
        assert text in bad[0].error.message
        assert bad[0].error.code == 3
        assert good[0].error is None
        assert also_good[0].outputs[0].data.shape == (1, COUNT)
