from __future__ import annotations

import shutil

import pytest

from tritonpy import InvalidArgument
from tritonpy.config import DATATYPE_OF_NUMBER
from tritonpy_backend_transformer.fields import check_config, complete_config, fields_of
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_testing import model_config


@pytest.fixture
def writing(decoder):
    return fields_of(read_folder(decoder[0]))


@pytest.fixture
def embedding(encoder):
    return fields_of(read_folder(encoder[0]))


def described(items):
    return {
        item.name: (DATATYPE_OF_NUMBER[item.data_type].config_name, list(item.dims))
        for item in items
    }


def test_the_complete_configuration_of_a_generating_model(writing):
    found = complete_config(model_config('name: "m" max_batch_size: 0'), writing, 4)
    assert found.model_transaction_policy.decoupled
    assert (found.max_batch_size, found.WhichOneof("scheduling_choice")) == (0, None)
    assert all(item.optional for item in found.input)
    wanted = {
        "text_input": ("TYPE_STRING", [1]), "input_ids": ("TYPE_INT32", [-1]), "stream": ("TYPE_BOOL", [1]),
        "sampling_parameters": ("TYPE_STRING", [1]), "exclude_input_in_output": ("TYPE_BOOL", [1]),
        "return_finish_reason": ("TYPE_BOOL", [1]), "return_cumulative_logprob": ("TYPE_BOOL", [1]), "return_logprobs": ("TYPE_BOOL", [1]),
        "return_num_input_tokens": ("TYPE_BOOL", [1]), "return_num_output_tokens": ("TYPE_BOOL", [1]),
        "max_tokens": ("TYPE_INT32", [1]), "min_tokens": ("TYPE_INT32", [1]), "temperature": ("TYPE_FP32", [1]), "top_k": ("TYPE_INT32", [1]),
        "top_p": ("TYPE_FP32", [1]), "repetition_penalty": ("TYPE_FP32", [1]), "length_penalty": ("TYPE_FP32", [1]),
        "seed": ("TYPE_UINT64", [1]), "n": ("TYPE_INT32", [1]), "beam_width": ("TYPE_INT32", [1]), "stop_words": ("TYPE_STRING", [-1]),
        "bad_words": ("TYPE_STRING", [-1]),
    }  # fmt: skip
    assert described(found.input) == wanted
    assert described(found.output) == {
        "text_output": ("TYPE_STRING", [-1]), "finish_reason": ("TYPE_STRING", [-1]), "cumulative_logprob": ("TYPE_FP32", [-1]),
        "logprobs": ("TYPE_STRING", [-1]), "num_input_tokens": ("TYPE_UINT32", [1]), "num_output_tokens": ("TYPE_UINT32", [-1]),
    }  # fmt: skip
    check_config(found, writing)


def test_without_a_tokenizer_a_model_takes_token_ids_only(tmp_path, decoder, translator):
    for name, (folder, _) in (("one", decoder), ("two", translator)):
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("tokenizer.json"))
        found = complete_config(
            model_config('name: "m"'), fields_of(read_folder(tmp_path / name)), 4
        )
        names = {item.name for item in (*found.input, *found.output)}
        assert {"input_ids", "output_ids"} < names
        assert not {"text_input", "text_output", "prefix"} & names


def test_the_complete_configuration_of_an_encoder(embedding):
    found = complete_config(model_config('name: "m"'), embedding, 4)
    assert (found.max_batch_size, found.WhichOneof("scheduling_choice")) == (4, "dynamic_batching")
    assert not found.model_transaction_policy.decoupled
    assert described(found.input) == {
        "text_input": ("TYPE_STRING", [1]), "input_ids": ("TYPE_INT64", [-1]), "attention_mask": ("TYPE_INT64", [-1]),
        "token_type_ids": ("TYPE_INT64", [-1]),
    }  # fmt: skip
    assert [item.allow_ragged_batch for item in found.input] == [False, True, True, True]
    assert described(found.output) == {"embedding": ("TYPE_FP32", [32])}


def test_configured_fields_are_kept(writing):
    text = """
        name: "m" model_transaction_policy { decoupled: false }
        input { name: "text_input" data_type: TYPE_STRING dims: 1 }
        output { name: "text_output" data_type: TYPE_STRING dims: 1 }"""
    found = complete_config(model_config(text), writing, 4)
    assert not found.model_transaction_policy.decoupled
    assert not found.input[0].optional
    assert found.input[1].optional
    assert list(found.output[0].dims) == [1]
    check_config(found, writing)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("max_batch_size: 4", "unable to load model 'm', max_batch_size must be 0"),
        (
            'input { name: "prompt" data_type: TYPE_STRING dims: 1 }',
            "unexpected inference input 'prompt', allowed inputs are: bad_words, ",
        ),
        (
            'output { name: "text" data_type: TYPE_STRING dims: 1 }',
            "unexpected inference output 'text', allowed outputs are: cumulative_logprob, ",
        ),
        (
            'input { name: "max_tokens" data_type: TYPE_FP32 dims: 1 }',
            "configuration expects datatype TYPE_FP32 for input 'max_tokens', model provides TYPE_INT32",
        ),
        (
            'input { name: "stream" data_type: TYPE_BOOL dims: [1, 2] }',
            "input 'stream' has dims [1, 2], the model expects [1]",
        ),
    ],
)
def test_a_configuration_that_contradicts_the_model_is_rejected(writing, text, why):
    with pytest.raises(InvalidArgument) as caught:
        check_config(model_config(f'name: "m" {text}'), writing)
    assert why in caught.value.message


def test_a_decoupled_encoder_is_rejected(embedding):
    with pytest.raises(InvalidArgument, match="cannot be decoupled"):
        check_config(
            model_config('name: "m" model_transaction_policy { decoupled: true }'), embedding
        )
