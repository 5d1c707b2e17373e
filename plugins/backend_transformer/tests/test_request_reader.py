from __future__ import annotations

import shutil

import numpy as np
import pytest

from tritonpy import InferRequest, InvalidArgument, OutputSpec, Tensor
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.request_reader import RequestReader
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.settings import read_settings
from tritonpy_testing import RecordingSink

from .conftest import inputs
from .tiny_models import START, TOKENS, token_ids_of, write_translator

OUTPUTS = [
    "text_output",
    "finish_reason",
    "cumulative_logprob",
    "logprobs",
    "num_input_tokens",
    "num_output_tokens",
]


def reader(path, decoupled=True, **parameters):
    folder = read_folder(path)
    return RequestReader(
        folder, read_settings(parameters, is_encoder_decoder=False), OUTPUTS, decoupled
    )


def read_request(path, arrays, parameters=None, outputs=None, **configured):
    tensors = {name: Tensor.from_numpy(name, array) for name, array in arrays.items()}
    wanted = None if outputs is None else {name: OutputSpec(name) for name in outputs}
    request = InferRequest(
        "m", tensors, RecordingSink().sink, outputs=wanted, parameters=parameters or {}
    )
    return reader(path, **configured).read(request)


def tokens(token_ids):
    return [TOKENS[number] for number in token_ids]


def test_text_is_tokenized(decoder):
    found = read_request(decoder[0], inputs("abc"))
    assert list(found.prompt.tokens) == tokens([START, *token_ids_of("abc")])
    assert (found.echoed_prompt, found.stream, found.outputs) == ("abc", False, ["text_output"])
    assert found.sampling == Sampling()


def test_token_ids_are_used_unchanged(decoder):
    found = read_request(decoder[0], inputs(input_ids=[5, 6]))
    assert (list(found.prompt.tokens), found.echoed_prompt) == (tokens([5, 6]), "")


def test_a_prompt_may_contain_special_tokens(decoder):
    found = read_request(decoder[0], inputs("<s>abc"), add_special_tokens="false")
    assert list(found.prompt.tokens) == tokens([START, *token_ids_of("abc")])


def test_an_empty_prompt_becomes_the_start_token(decoder):
    assert read_request(decoder[0], inputs(""), add_special_tokens="false").prompt.tokens == ["<s>"]
    assert read_request(decoder[0], inputs(input_ids=[])).prompt.tokens == ["<s>"]


def test_tensors_override_json_which_overrides_parameters_which_override_the_configuration(decoder):
    configured = {
        "sampling_parameters": '{"max_tokens": 1, "top_k": 1, "temperature": 0.1, "seed": 1}'
    }
    arrays = inputs("a", max_tokens=4, sampling_parameters='{"max_tokens": 3, "seed": 3}')
    found = read_request(
        decoder[0], arrays, {"max_tokens": 2, "seed": 2, "top_k": 2, "user": "me"}, **configured
    )
    assert (found.sampling.max_tokens, found.sampling.seed, found.sampling.top_k) == (4, 3, 2)
    assert found.sampling.temperature == pytest.approx(0.1)


def test_lists_are_read_from_tensors(decoder):
    found = read_request(decoder[0], inputs("a", stop_words=("x", "yz"), bad_words="b", seed=2**63))
    assert (found.sampling.stop, found.sampling.bad_words, found.sampling.seed) == (
        ("x", "yz"),
        ("b",),
        2**63,
    )


def test_an_empty_tensor_is_ignored(decoder):
    found = read_request(
        decoder[0],
        {**inputs("a"), "stop_words": np.array([], object), "max_tokens": np.array([], np.int32)},
    )
    assert found.sampling == Sampling()


def test_flags_select_the_outputs(decoder):
    found = read_request(
        decoder[0], inputs("a", return_finish_reason=True), {"return_num_input_tokens": True}
    )
    assert found.outputs == ["text_output", "finish_reason", "num_input_tokens"]
    assert found.sampling.logprobs == 0


def test_only_requested_outputs_are_returned(decoder):
    found = read_request(decoder[0], inputs("a", return_finish_reason=True), outputs=["logprobs"])
    assert (found.outputs, found.sampling.logprobs) == (["logprobs"], 1)


def test_a_stream_does_not_begin_with_the_prompt(decoder):
    assert read_request(decoder[0], inputs("a", stream=True)).echoed_prompt == ""
    assert read_request(decoder[0], inputs("a", exclude_input_in_output=True)).echoed_prompt == ""


def test_max_tokens_is_limited_by_the_models_positions(decoder):
    assert read_request(decoder[0], inputs("abc", max_tokens=1000)).sampling.max_tokens == 96 - 4
    assert (
        read_request(
            decoder[0], inputs("abc", max_tokens=1000), max_model_len="20"
        ).sampling.max_tokens
        == 16
    )
    assert read_request(decoder[0], inputs("abc", max_tokens=1000)).sampling.limited_by_context
    assert not read_request(
        decoder[0], inputs("abc", max_tokens=96 - 4)
    ).sampling.limited_by_context


@pytest.mark.parametrize(
    ("arrays", "parameters", "text"),
    [
        ({}, {}, "a request needs one of the inputs 'text_input' and 'input_ids'"),
        (inputs("a", input_ids=[1]), {}, "a request needs one of the inputs 'text_input' and 'input_ids'"),
        (inputs(input_ids=[1, 999]), {}, "unknown token 999: the model has tokens 0 to 260"),
        (inputs("x" * 96), {}, "the prompt has 97 tokens, the model supports at most 96 prompt and generated tokens"),
        (inputs("x" * 90), {"min_tokens": 9}, "the prompt has 91 tokens, the model supports at most 96 prompt and generated tokens"),
        ({"text_input": np.array([b"\xff"], object)}, {}, "input 'text_input' is not valid UTF-8"),
        (inputs("a"), {"stop_token_ids": 900}, "'stop_token_ids' names token 900, the model has tokens 0 to 260"),
        (inputs("a", stream=True, exclude_input_in_output=False), {}, "When streaming, `exclude_input_in_output` = False is not allowed."),
        (inputs("a"), {"stream": "perhaps"}, "'stream' must be true or false, not 'perhaps'"),
        (inputs("a", sampling_parameters="{"), {}, "'sampling_parameters' is not valid JSON"),
    ],
)  # fmt: skip
def test_invalid_requests_are_rejected(decoder, arrays, parameters, text):
    with pytest.raises(InvalidArgument) as caught:
        read_request(decoder[0], arrays, parameters)
    assert text in caught.value.message


def test_a_stream_needs_a_decoupled_model(decoder):
    with pytest.raises(
        InvalidArgument, match="'stream' needs a model whose configuration says decoupled: true"
    ):
        read_request(decoder[0], inputs("a", stream=True), decoupled=False)


@pytest.mark.parametrize(
    "arrays",
    [inputs("a"), inputs(input_ids=[5], stop_words="x"), inputs(input_ids=[5], bad_words="x")],
)
def test_texts_need_a_tokenizer(tmp_path, decoder, arrays):
    shutil.copytree(decoder[0], tmp_path / "m", ignore=shutil.ignore_patterns("tokenizer.json"))
    with pytest.raises(
        InvalidArgument, match=r"needs a tokenizer, but '.*' contains no 'tokenizer.json'"
    ):
        read_request(tmp_path / "m", arrays)


def test_a_translator_reads_a_source_and_a_prefix(translator):
    found = read_request(translator[0], inputs("abc", prefix="x"))
    assert list(found.prompt.source) == tokens([START, *token_ids_of("abc")])
    assert list(found.prompt.tokens) == tokens(token_ids_of("x"))
    assert found.echoed_prompt == ""
    by_tokens = read_request(
        translator[0], inputs(input_ids=[START, *token_ids_of("abc")], prefix_ids=token_ids_of("x"))
    )
    assert (by_tokens.prompt.source, by_tokens.prompt.tokens) == (
        found.prompt.source,
        found.prompt.tokens,
    )


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (inputs(input_ids=[]), "the text is empty"),
        (inputs("x" * 64), "the text has 65 tokens, the model reads at most 64"),
    ],
)
def test_a_source_of_invalid_length_is_rejected(translator, arrays, text):
    with pytest.raises(InvalidArgument, match=text):
        read_request(translator[0], arrays)


def test_a_translator_without_a_start_token_needs_a_prefix(tmp_path):
    write_translator(tmp_path / "m", start=None)
    with pytest.raises(InvalidArgument, match="the model has no start token"):
        read_request(tmp_path / "m", inputs(input_ids=[5]))
    assert read_request(tmp_path / "m", inputs(input_ids=[5], prefix_ids=[1])).prompt.tokens == [
        "<s>"
    ]
