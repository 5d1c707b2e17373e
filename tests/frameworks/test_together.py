"""All backends in one server, asked at once."""

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
from tests.conftest import Served
from tests.frameworks.asking import PROTOCOLS, Asker, asker, texts
from tests.frameworks.digits_reference import scores
from tests.frameworks.test_digits import TOLERANCE, TOLERANCES
from tests.frameworks.test_sentences import FORMATS, LINES

Array = npt.NDArray[Any]
THREADS, TURNS = 8, 40
Question = Callable[[Asker, random.Random], None]


@pytest.fixture(scope="session")
def questions(images: Array, weights: Mapping[str, Array], served: Served) -> dict[str, Question]:
    """One question to each model, which checks its answer."""
    right = scores(images, weights)
    with asker(served, "http") as client:
        vectors = client.ask("sentences_onnx", {"TEXT": texts(*LINES)})["sentence_embedding"]

    def digits(form: str) -> Question:
        def question(client: Asker, chance: random.Random) -> None:
            chosen = np.array(chance.choices(range(len(images)), k=chance.randint(1, 9)))
            answer = client.ask_one(f"digits_{form}", images[chosen])
            np.testing.assert_allclose(answer, right[chosen], atol=TOLERANCES.get(form, TOLERANCE))

        return question

    def sentences(model: str) -> Question:
        def question(client: Asker, chance: random.Random) -> None:
            chosen = chance.choices(range(len(LINES)), k=chance.randint(1, 4))
            answer = client.ask(model, {"TEXT": texts(*(LINES[number] for number in chosen))})["sentence_embedding"]
            np.testing.assert_allclose(answer, vectors[chosen], atol=5e-3)

        return question

    return {
        **{f"digits_{form}": digits(form) for form in WRITERS},
        **{f"sentences_{form}": sentences(f"sentences_{form}") for form in FORMATS},
    }


def test_mixed_traffic_over_both_protocols_is_answered_rightly(
    served: Served, questions: Mapping[str, Question]
) -> None:
    before = {model: successes(served, model) for model in questions}
    begin = threading.Barrier(THREADS)
    asked: list[Counter[str]] = [Counter() for _ in range(THREADS)]

    def thread(number: int) -> None:
        chance = random.Random(number)
        with asker(served, PROTOCOLS[number % 2]) as client:
            begin.wait()
            for _ in range(TURNS):
                model = chance.choice(list(questions))
                questions[model](client, chance)
                asked[number][model] += 1

    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(thread, range(THREADS)))
    total = sum(asked, Counter())
    assert {model: successes(served, model) - before[model] for model in questions} == total


def test_every_model_is_loaded_and_every_backend_is_among_theirs(served: Served, made: Path) -> None:
    index = served.ask("/v2/repository/index", "{}").json()
    assert {entry["name"] for entry in index} == {path.name for path in made.iterdir()}
    assert [entry for entry in index if entry["state"] != "READY"] == []
    backends = {served.ask(f"/v2/models/{entry['name']}/config").json()["backend"] for entry in index}
    assert backends >= {"onnxruntime", "pytorch", "tensorflow", "openvino", "transformer", "python"}


def successes(served: Served, model: str) -> int:
    [version] = served.ask(f"/v2/models/{model}/stats").json()["model_stats"]
    assert version["inference_stats"]["fail"]["count"] == 0
    return int(version["inference_stats"]["success"]["count"])
