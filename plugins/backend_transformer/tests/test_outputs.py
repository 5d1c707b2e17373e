from __future__ import annotations

import json

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Choice, News
from tritonpy_backend_transformer.folder import read_folder
from tritonpy_backend_transformer.outputs import OUTPUTS, Telling, Wording, tensors_of

from .listening import text
from .tiny_models import TOKENS


@pytest.fixture
def telling(decoder):
    texts = [text(4), text(4)]
    texts[0].log_prob, texts[1].log_prob = -1.5, -2.5
    news = [
        News("a", [Choice(5, -0.5, ((9, -0.25), (5, -0.5)))], None),
        News("bc", [Choice(6, -1.0), Choice(7, -1.5)], "stop"),
    ]
    return Telling(texts, news, Wording("Q: ", read_folder(decoder[0]).tokenizer, TOKENS))


def test_every_output_has_its_type_and_an_element_per_text(telling):
    found = {tensor.name: tensor for tensor in tensors_of(list(OUTPUTS), telling)}
    types = {name: (tensor.datatype, tensor.shape) for name, tensor in found.items()}
    assert types == {
        "text_output": ("BYTES", (2,)), "output_ids": ("INT32", (4,)), "finish_reason": ("BYTES", (2,)), "cumulative_logprob": ("FP32", (2,)),
        "logprobs": ("BYTES", (2,)), "num_input_tokens": ("UINT32", (1,)), "num_output_tokens": ("UINT32", (2,)),
    }  # fmt: skip
    assert found["text_output"].strings() == [b"Q: a", b"Q: bc"]
    assert found["output_ids"].numpy().tolist() == [5, -1, 6, 7]
    assert found["finish_reason"].strings() == [b"None", b"stop"]
    np.testing.assert_allclose(found["cumulative_logprob"].numpy(), [-1.5, -2.5])
    assert found["num_input_tokens"].numpy().tolist() == [4]
    assert found["num_output_tokens"].numpy().tolist() == [1, 2]


def test_log_probabilities_are_told_as_vllm_does(telling):
    [tensor] = tensors_of(["logprobs"], telling)
    [one, two] = [json.loads(each) for each in tensor.strings()]
    assert one == [
        {
            "5": {"logprob": -0.5, "rank": 2, "decoded_token": TOKENS[5]},
            "9": {"logprob": -0.25, "rank": 1, "decoded_token": TOKENS[9]},
        }
    ]
    assert [list(step) for step in two] == [["6"], ["7"]]
    assert two[0]["6"]["rank"] is None


def test_one_text_has_its_tokens_as_they_are():
    telling = Telling([text()], [News("", [Choice(8, None), Choice(9, None)], None)], Wording("", None, TOKENS))
    [tensor] = tensors_of(["output_ids"], telling)
    assert tensor.numpy().tolist() == [8, 9]
