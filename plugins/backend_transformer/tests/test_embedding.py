from __future__ import annotations

import shutil

import numpy as np
import pytest

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.embedding import lengths_of, normalize, pool
from tritonpy_backend_transformer.settings import Pooling

from .tiny_models import START, token_ids_of, write_encoder, write_tokenizer

STATES = np.arange(12, dtype=np.float32).reshape(2, 3, 2)


def texts(*rows):
    return {"text_input": np.array([row.encode() for row in rows], object).reshape(-1, 1)}


def vectors(responses):
    [response] = responses
    assert response.error is None, response.error
    return response.outputs[0].numpy()


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (Pooling.MEAN, [[2, 3], [6, 7]]),
        (Pooling.CLS, [[0, 1], [6, 7]]),
        (Pooling.LAST, [[4, 5], [6, 7]]),
    ],
)
def test_a_vector_is_computed_from_its_rows_tokens(pooling, expected):
    assert pool(STATES, [3, 1], pooling).tolist() == expected


def test_vectors_have_length_one():
    np.testing.assert_allclose(
        normalize(np.array([[3, 4], [0, 0]], np.float32)), [[0.6, 0.8], [0, 0]]
    )


def test_a_mask_gives_the_lengths():
    assert lengths_of(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]])) == [2, 1, 3]
    with pytest.raises(InvalidArgument, match="can only mask tokens at the end of a row"):
        lengths_of(np.array([[0, 1, 1]]))


@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "pooler"])
@pytest.mark.parametrize("normalize", ["true", "false"])
def test_vectors_equal_those_of_numpy(encoder, load, pooling, normalize):
    folder, plain = encoder
    with load(folder, "max_batch_size: 8", pooling=pooling, normalize=normalize) as harness:
        together = harness.execute(
            harness.request(texts("abc", "hallo text")), harness.request(texts("x"))
        )
    found = np.concatenate([vectors(responses) for responses in together])
    for vector, text in zip(found, ["abc", "hallo text", "x"], strict=True):
        states = plain.encoder_states([START, *token_ids_of(text)])
        expected = {"mean": states.mean(0), "cls": states[0], "last": states[-1]}.get(pooling)
        if expected is None:
            expected = np.tanh(plain.linear("pooler_dense", states[0]))
        if normalize == "true":
            expected = expected / np.linalg.norm(expected)
        np.testing.assert_allclose(vector, expected, atol=1e-4)


def test_masked_tokens_give_the_same_vectors_as_their_text(encoder, load):
    with load(encoder[0], "max_batch_size: 8") as harness:
        [expected] = harness.execute(harness.request(texts("abc", "x")))
        token_ids = np.array([[START, *token_ids_of("abc")], [START, *token_ids_of("x"), 7, 7]])
        mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
        [found] = harness.execute(harness.request({"input_ids": token_ids, "attention_mask": mask}))
    np.testing.assert_allclose(vectors(found), vectors(expected), atol=1e-6)


def test_segments_change_the_vectors(encoder, load):
    folder, plain = encoder
    token_ids, segments = np.array([[1, 50, 60]]), np.array([[0, 0, 1]])
    with load(folder, "max_batch_size: 8", pooling="cls", normalize="false") as harness:
        [found] = harness.execute(
            harness.request({"input_ids": token_ids, "token_type_ids": segments})
        )
    np.testing.assert_allclose(
        vectors(found)[0], plain.encoder_states([1, 50, 60], [0, 0, 1])[0], atol=1e-4
    )


def test_hidden_states_of_all_tokens_are_an_output(encoder, load):
    folder, plain = encoder
    config = (
        'max_batch_size: 8 output { name: "last_hidden_state" data_type: TYPE_FP32 dims: [-1, 32] }'
    )
    with load(folder, config) as harness:
        requests = [
            harness.request(texts(text), ["last_hidden_state"]) for text in ("abc", "longer text")
        ]
        for responses, text in zip(harness.execute(*requests), ("abc", "longer text"), strict=True):
            np.testing.assert_allclose(
                vectors(responses)[0], plain.encoder_states([START, *token_ids_of(text)]), atol=1e-4
            )


def test_a_model_without_batches_has_no_rows(encoder, load):
    harness = load(encoder[0])
    harness.model.default_max_batch_size = 0
    with harness:
        [responses] = harness.execute(harness.request({"text_input": np.array([b"abc"], object)}))
        [by_tokens] = harness.execute(
            harness.request({"input_ids": np.array([START, *token_ids_of("abc")])})
        )
    assert vectors(responses).shape == (32,)
    np.testing.assert_allclose(vectors(by_tokens), vectors(responses), atol=1e-6)


def test_an_encoder_needs_no_pooler(tmp_path, load):
    write_encoder(tmp_path / "one", pooler=False)
    write_tokenizer(tmp_path / "one")
    with load(tmp_path / "one", "max_batch_size: 2") as harness:
        [responses] = harness.execute(harness.request(texts("abc")))
    assert vectors(responses).shape == (1, 32)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({}, "a request needs one of the inputs"),
        (texts("x" * 60), "the text has 61 tokens, the model reads at most 48"),
        ({"text_input": np.array([[b"\xff"]], object)}, "input 'text_input' is not valid UTF-8"),
        ({"input_ids": np.zeros((1, 0), np.int64)}, "the text has no tokens"),
        (
            {"input_ids": np.array([[-1]])},
            "'input_ids' must be tokens of the model, which are 0 to 260",
        ),
        (
            {"input_ids": np.array([[5, 6]]), "attention_mask": np.array([[1]])},
            "the shape of 'attention_mask' differs from that of 'input_ids'",
        ),
    ],
)
def test_only_invalid_requests_of_a_batch_are_rejected(encoder, load, arrays, text):
    with load(encoder[0], "max_batch_size: 8") as harness:
        [bad], good = harness.execute(harness.request(arrays), harness.request(texts("abc")))
    assert text in bad.error.message
    assert vectors(good).shape == (1, 32)


def test_without_a_tokenizer_a_model_takes_token_ids_only(tmp_path, encoder, load):
    shutil.copytree(encoder[0], tmp_path / "bare", ignore=shutil.ignore_patterns("tokenizer.json"))
    with load(tmp_path / "bare", "max_batch_size: 8") as harness:
        [responses] = harness.execute(harness.request({"input_ids": np.array([[1, 5]])}))
        [refused] = harness.execute(harness.request(texts("abc")))
    assert vectors(responses).shape == (1, 32)
    assert "'text_input' needs a tokenizer" in refused[0].error.message
