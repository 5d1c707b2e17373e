"""All backends in one server under concurrent requests."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from examples.formats.__main__ import WRITERS
from tests.conftest import ServerProcess
from tests.frameworks.clients import PROTOCOLS, InferenceClient, inference_client, texts
from tests.frameworks.digits_reference import scores
from tests.frameworks.test_digits import TOLERANCE, TOLERANCES
from tests.frameworks.test_sentences import FORMATS, LINES

Array = npt.NDArray[Any]
THREADS, TURNS = 8, 40
Question = Callable[[InferenceClient, random.Random], None]


@pytest.fixture(scope="session")
def questions(
    images: Array, weights: Mapping[str, Array], served: ServerProcess
) -> dict[str, Question]:
    """One function per model that sends a request and checks the response."""
    right = scores(images, weights)
    with inference_client(served, "http") as client:
        vectors = client.infer("sentences_onnx", {"TEXT": texts(*LINES)})["sentence_embedding"]

    def digits(form: str) -> Question:
        def question(client: InferenceClient, chance: random.Random) -> None:
            chosen = np.array(chance.choices(range(len(images)), k=chance.randint(1, 9)))
            response = client.infer_single(f"digits_{form}", images[chosen])
            np.testing.assert_allclose(
                response, right[chosen], atol=TOLERANCES.get(form, TOLERANCE)
            )

        return question

    def sentences(model: str) -> Question:
        def question(client: InferenceClient, chance: random.Random) -> None:
            chosen = chance.choices(range(len(LINES)), k=chance.randint(1, 4))
            response = client.infer(model, {"TEXT": texts(*(LINES[number] for number in chosen))})[
                "sentence_embedding"
            ]
            np.testing.assert_allclose(response, vectors[chosen], atol=5e-3)

        return question

    return {
        **{f"digits_{form}": digits(form) for form in WRITERS},
        **{f"sentences_{form}": sentences(f"sentences_{form}") for form in FORMATS},
    }


def test_mixed_traffic_over_both_protocols_gets_correct_responses(
    served: ServerProcess, questions: Mapping[str, Question]
) -> None:
    before = {model: successes(served, model) for model in questions}
    begin = threading.Barrier(THREADS)
    counts: list[Counter[str]] = [Counter() for _ in range(THREADS)]

    def thread(number: int) -> None:
        chance = random.Random(number)
        with inference_client(served, PROTOCOLS[number % 2]) as client:
            begin.wait()
            for _ in range(TURNS):
                model = chance.choice(list(questions))
                questions[model](client, chance)
                counts[number][model] += 1

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(thread, range(THREADS)))
    total = sum(counts, Counter())
    assert {model: successes(served, model) - before[model] for model in questions} == total


def test_every_model_is_loaded_and_every_backend_is_used(served: ServerProcess, made: Path) -> None:
    index = served.request("/v2/repository/index", "{}").json()
    assert {entry["name"] for entry in index} == {path.name for path in made.iterdir()}
    assert [entry for entry in index if entry["state"] != "READY"] == []
    backends = {
        served.request(f"/v2/models/{entry['name']}/config").json()["backend"] for entry in index
    }
    assert backends >= {"onnxruntime", "pytorch", "tensorflow", "openvino", "transformer", "python"}


def successes(served: ServerProcess, model: str) -> int:
    [version] = served.request(f"/v2/models/{model}/stats").json()["model_stats"]
    assert version["inference_stats"]["fail"]["count"] == 0
    return int(version["inference_stats"]["success"]["count"])
