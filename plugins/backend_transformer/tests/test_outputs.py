from __future__ import annotations

import json

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Choice, TextDelta
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.outputs import OUTPUTS, ResponseContent, TextFormat, tensors_of

from .fakes import text
from .tiny_models import TOKENS


@pytest.fixture
def content(decoder):
    texts = [text(4), text(4)]
    texts[0].log_prob, texts[1].log_prob = -1.5, -2.5
    news = [
        TextDelta("a", [Choice(5, -0.5, ((9, -0.25), (5, -0.5)))], None),
        TextDelta("bc", [Choice(6, -1.0), Choice(7, -1.5)], "stop"),
    ]
    return ResponseContent(
        texts, news, TextFormat("Q: ", read_folder(decoder[0]).tokenizer, TOKENS)
    )


def test_every_output_has_its_type_and_an_element_per_text(content):
    found = {tensor.name: tensor for tensor in tensors_of(list(OUTPUTS), content)}
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


def test_log_probabilities_have_vllms_format(content):
    [tensor] = tensors_of(["logprobs"], content)
    [one, two] = [json.loads(each) for each in tensor.strings()]
    assert one == [
        {
            "5": {"logprob": -0.5, "rank": 2, "decoded_token": TOKENS[5]},
            "9": {"logprob": -0.25, "rank": 1, "decoded_token": TOKENS[9]},
        }
    ]
    assert [list(step) for step in two] == [["6"], ["7"]]
    assert two[0]["6"]["rank"] is None


def test_token_ids_of_one_text_are_not_padded():
    content = ResponseContent(
        [text()],
        [TextDelta("", [Choice(8, None), Choice(9, None)], None)],
        TextFormat("", None, TOKENS),
    )
    [tensor] = tensors_of(["output_ids"], content)
    assert tensor.numpy().tolist() == [8, 9]
