from __future__ import annotations

import shutil

import numpy as np
import pytest

from tritonpy import InferRequest, InvalidArgument, OutputSpec, Tensor
from tritonpy.testing import Witness
from tritonpy_backend_transformer.asking import Reader
from tritonpy_backend_transformer.folder import read_folder
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.settings import settings

from .conftest import inputs
from .tiny_models import START, TOKENS, numbers_of, write_translator

OUTPUTS = ["text_output", "finish_reason", "cumulative_logprob", "logprobs", "num_input_tokens", "num_output_tokens"]


def reader(path, decoupled=True, **parameters):
    folder = read_folder(path)
    return Reader(folder, settings(parameters, translates=False), OUTPUTS, decoupled)


def asked(path, arrays, parameters=None, outputs=None, **configured):
    tensors = {name: Tensor.from_numpy(name, array) for name, array in arrays.items()}
    wanted = None if outputs is None else {name: OutputSpec(name) for name in outputs}
    request = InferRequest("m", tensors, Witness().sink, outputs=wanted, parameters=parameters or {})
    return reader(path, **configured).read(request)


def tokens(numbers):
    return [TOKENS[number] for number in numbers]


def test_a_text_is_made_into_tokens(decoder):
    found = asked(decoder[0], inputs("abc"))
    assert list(found.prompt.tokens) == tokens([START, *numbers_of("abc")])
    assert (found.before, found.stream, found.outputs) == ("abc", False, ["text_output"])
    assert found.sampling == Sampling()


def test_tokens_are_taken_as_they_are(decoder):
    found = asked(decoder[0], inputs(input_ids=[5, 6]))
    assert (list(found.prompt.tokens), found.before) == (tokens([5, 6]), "")


def test_a_prompt_may_bring_its_own_special_tokens(decoder):
    found = asked(decoder[0], inputs("<s>abc"), add_special_tokens="false")
    assert list(found.prompt.tokens) == tokens([START, *numbers_of("abc")])


def test_an_empty_prompt_is_the_token_that_begins_texts(decoder):
    assert asked(decoder[0], inputs(""), add_special_tokens="false").prompt.tokens == ["<s>"]
    assert asked(decoder[0], inputs(input_ids=[])).prompt.tokens == ["<s>"]


def test_tensors_win_over_json_over_parameters_over_the_configuration(decoder):
    configured = {"sampling_parameters": '{"max_tokens": 1, "top_k": 1, "temperature": 0.1, "seed": 1}'}
    arrays = inputs("a", max_tokens=4, sampling_parameters='{"max_tokens": 3, "seed": 3}')
    found = asked(decoder[0], arrays, {"max_tokens": 2, "seed": 2, "top_k": 2, "user": "me"}, **configured)
    assert (found.sampling.max_tokens, found.sampling.seed, found.sampling.top_k) == (4, 3, 2)
    assert found.sampling.temperature == pytest.approx(0.1)


def test_lists_come_as_tensors(decoder):
    found = asked(decoder[0], inputs("a", stop_words=("x", "yz"), bad_words="b", seed=2**63))
    assert (found.sampling.stop, found.sampling.bad_words, found.sampling.seed) == (("x", "yz"), ("b",), 2**63)


def test_an_empty_tensor_says_nothing(decoder):
    found = asked(decoder[0], {**inputs("a"), "stop_words": np.array([], object), "max_tokens": np.array([], np.int32)})
    assert found.sampling == Sampling()


def test_flags_choose_the_outputs(decoder):
    found = asked(decoder[0], inputs("a", return_finish_reason=True), {"return_num_input_tokens": True})
    assert found.outputs == ["text_output", "finish_reason", "num_input_tokens"]
    assert found.sampling.logprobs == 0


def test_outputs_that_are_asked_for_are_given_and_no_others(decoder):
    found = asked(decoder[0], inputs("a", return_finish_reason=True), outputs=["logprobs"])
    assert (found.outputs, found.sampling.logprobs) == (["logprobs"], 1)


def test_a_stream_does_not_begin_with_the_prompt(decoder):
    assert asked(decoder[0], inputs("a", stream=True)).before == ""
    assert asked(decoder[0], inputs("a", exclude_input_in_output=True)).before == ""


def test_an_answer_ends_where_the_model_does(decoder):
    assert asked(decoder[0], inputs("abc", max_tokens=1000)).sampling.max_tokens == 96 - 4
    assert asked(decoder[0], inputs("abc", max_tokens=1000), max_model_len="20").sampling.max_tokens == 16
    assert asked(decoder[0], inputs("abc", max_tokens=1000)).sampling.limited_by_context
    assert not asked(decoder[0], inputs("abc", max_tokens=96 - 4)).sampling.limited_by_context


@pytest.mark.parametrize(
    ("arrays", "parameters", "text"),
    [
        ({}, {}, "a request needs one of the inputs 'text_input' and 'input_ids'"),
        (inputs("a", input_ids=[1]), {}, "a request needs one of the inputs 'text_input' and 'input_ids'"),
        (inputs(input_ids=[1, 999]), {}, "token 999 is not one of the model's, which has tokens 0 to 260"),
        (inputs("x" * 96), {}, "the prompt has 97 tokens, the model takes at most 96 together with those that are generated"),
        (inputs("x" * 90), {"min_tokens": 9}, "the prompt has 91 tokens, the model takes at most 96"),
        ({"text_input": np.array([b"\xff"], object)}, {}, "input 'text_input' is no text in UTF-8"),
        (inputs("a"), {"stop_token_ids": 900}, "'stop_token_ids' names token 900, the model has tokens 0 to 260"),
        (inputs("a", stream=True, exclude_input_in_output=False), {}, "When streaming, `exclude_input_in_output` = False is not allowed."),
        (inputs("a"), {"stream": "perhaps"}, "'stream' must be true or false, not 'perhaps'"),
        (inputs("a", sampling_parameters="{"), {}, "'sampling_parameters' is no JSON"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(decoder, arrays, parameters, text):
    with pytest.raises(InvalidArgument) as caught:
        asked(decoder[0], arrays, parameters)
    assert text in caught.value.message


def test_a_stream_needs_a_decoupled_model(decoder):
    with pytest.raises(InvalidArgument, match="'stream' needs a model whose configuration says decoupled: true"):
        asked(decoder[0], inputs("a", stream=True), decoupled=False)


@pytest.mark.parametrize(
    "arrays", [inputs("a"), inputs(input_ids=[5], stop_words="x"), inputs(input_ids=[5], bad_words="x")]
)
def test_texts_need_a_tokenizer(tmp_path, decoder, arrays):
    shutil.copytree(decoder[0], tmp_path / "m", ignore=shutil.ignore_patterns("tokenizer.json"))
    with pytest.raises(InvalidArgument, match="needs a tokenizer, and there is no "):
        asked(tmp_path / "m", arrays)


def test_a_translator_reads_a_source_and_a_prefix(translator):
    found = asked(translator[0], inputs("abc", prefix="x"))
    assert list(found.prompt.source) == tokens([START, *numbers_of("abc")])
    assert list(found.prompt.tokens) == tokens(numbers_of("x"))
    assert found.before == ""
    by_tokens = asked(translator[0], inputs(input_ids=[START, *numbers_of("abc")], prefix_ids=numbers_of("x")))
    assert (by_tokens.prompt.source, by_tokens.prompt.tokens) == (found.prompt.source, found.prompt.tokens)


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        (inputs(input_ids=[]), "the text is empty"),
        (inputs("x" * 64), "the text has 65 tokens, the model reads at most 64"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused(translator, arrays, text):
    with pytest.raises(InvalidArgument, match=text):
        asked(translator[0], arrays)


def test_a_translator_without_a_first_token_needs_a_prefix(tmp_path):
    write_translator(tmp_path / "m", start=None)
    with pytest.raises(InvalidArgument, match="the model begins with no token of its own"):
        asked(tmp_path / "m", inputs(input_ids=[5]))
    assert asked(tmp_path / "m", inputs(input_ids=[5], prefix_ids=[1])).prompt.tokens == ["<s>"]
