"""Real weights end to end: texts through tokenizer and encoder, compared with the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tokenizers

from examples.sentences.weights import package_file, weights
from tests.frameworks.clients import InferenceClient, texts
from tests.frameworks.sentences_reference import embedding

Array = npt.NDArray[Any]
FORMATS = ("onnx", "torch", "openvino", "transformer")
TOLERANCE = 1e-5
# OpenVINO computes in BF16 if the processor can, unless the model's parameter `precision` disables
# it.
TOLERANCES = {"openvino": 3e-3}
LINES = (
    "A cat sits on the mat.",
    "There is a kitten lying on a rug.",
    "The central bank raised interest rates again this quarter, to nobody's surprise.",
    "Zinsen",
)


@pytest.fixture(scope="session")
def checkpoint() -> Mapping[str, Array]:
    return weights()


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return tokenizers.Tokenizer.from_file(str(package_file("tokenizer.json")))


@pytest.fixture(scope="session")
def expected(checkpoint: Mapping[str, Array], tokenizer: Any) -> Array:
    """Each text alone, without padding."""
    tokenizer.no_padding()
    return np.stack([embedding(tokenizer.encode(line).ids, checkpoint) for line in LINES])


def test_the_checkpoint_finds_the_cat_nearer_to_the_kitten_than_to_the_bank(
    expected: Array,
) -> None:
    similar = expected @ expected.T
    assert similar[0, 1] > 0.5 > similar[0, 2]


@pytest.mark.parametrize("form", FORMATS)
def test_the_similarities_agree_with_the_weights_run_directly(
    client: InferenceClient, form: str, expected: Array
) -> None:
    response = client.infer(f"sentences_{form}", {"TEXT": texts(*LINES)})["sentence_embedding"]
    np.testing.assert_allclose(
        response @ response.T, expected @ expected.T, atol=10 * TOLERANCES.get(form, TOLERANCE)
    )
    np.testing.assert_allclose(response, expected, atol=TOLERANCES.get(form, TOLERANCE))


@pytest.mark.parametrize("form", FORMATS)
def test_a_text_alone_has_the_vector_that_it_has_among_others(
    client: InferenceClient, form: str, expected: Array
) -> None:
    for line, vector in zip(LINES, expected, strict=True):
        alone = client.infer(f"sentences_{form}", {"TEXT": texts(line)})["sentence_embedding"]
        np.testing.assert_allclose(alone, vector[None], atol=TOLERANCES.get(form, TOLERANCE))


def test_the_transformer_backend_reads_texts_by_itself(
    client: InferenceClient, expected: Array
) -> None:
    response = client.infer("encoder_transformer", {"text_input": texts(*LINES)})["embedding"]
    np.testing.assert_allclose(response, expected, atol=TOLERANCE)


def test_the_tokenizer_returns_ids_and_pads_to_the_longest_text(
    client: InferenceClient, tokenizer: Any
) -> None:
    response = client.infer("tokenizer", {"TEXT": texts(*LINES)})
    alone = [tokenizer.encode(line).ids for line in LINES]
    assert response["attention_mask"].sum(1).tolist() == [len(ids) for ids in alone]
    assert response["input_ids"].shape == (len(LINES), max(map(len, alone)))
    for row, ids in zip(response["input_ids"], alone, strict=True):
        assert row[: len(ids)].tolist() == ids
