"""CTranslate2's results, compared with models in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Continuation, Prompt
from tritonpy_backend_transformer.devices import DeviceSet, open_model
from tritonpy_backend_transformer.generation_models import Decoder, EncoderDecoder
from tritonpy_backend_transformer.model_folder import read_folder
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.settings import read_settings
from tritonpy_backend_transformer.shared_calls import call_options

from .fakes import RecordingListener
from .tiny_models import END, START, TOKENS, log_softmax, token_ids_of

PROMPT = [START, *token_ids_of("hallo")]


def opened(path):
    folder = read_folder(path)
    model = open_model(
        folder, read_settings({}, is_encoder_decoder=False), DeviceSet("cpu", (0,)), 1, 1
    )
    return folder, model


@pytest.fixture(scope="module")
def generation_model(decoder):
    return Decoder(*opened(decoder[0]))


@pytest.fixture(scope="module")
def plain(decoder):
    return decoder[1]


@pytest.fixture(scope="module")
def translating(translator):
    return EncoderDecoder(*opened(translator[0]))


def begun(token_ids=PROMPT, source=(), banned=(), **sampling):
    prompt = Prompt([TOKENS[number] for number in token_ids], [TOKENS[number] for number in source])
    return Continuation(RecordingListener(), prompt, Sampling(**sampling), {END}, None, 0, banned)


def generate(generation_model, *texts):
    """Generate texts in one call. A text with a sampler may need more calls."""

    def on_token(place, number, log_prob, scores):
        each = texts[place]
        return (
            each.add(number, log_prob)
            if scores is None
            else each.add_from_scores(number, scores, log_prob)
        )

    while open_texts := [each for each in texts if each.finish is None]:
        assert open_texts == list(texts) or len(texts) == 1
        generation_model.write(open_texts, call_options(open_texts[0]), on_token)


def greedy(scores_of, token_ids, count, change=lambda scores, earlier: scores):
    """Return the most probable tokens sequentially. `change` may change their scores."""
    found = []
    while len(found) < count:
        best = int(np.argmax(change(scores_of([*token_ids, *found]).copy(), found)))
        if best == END:
            break
        found.append(best)
    return found


def test_texts_of_different_lengths_share_a_call(generation_model, plain):
    texts = [begun(PROMPT[:size], max_tokens=12) for size in (2, 4, 6)]
    generate(generation_model, *texts)
    for each, size in zip(texts, (2, 4, 6), strict=True):
        assert each.token_ids == plain.greedy(PROMPT[:size], 12)


def test_a_text_continues_in_another_call(generation_model, plain):
    text = begun(max_tokens=20)
    for pause in (3, 9, 20):
        generation_model.write(
            [text],
            call_options(text),
            lambda _p, number, log, _s, pause=pause: (
                text.add(number, log) or len(text.token_ids) >= pause
            ),
        )
        assert len(text.token_ids) == pause
    assert text.token_ids == plain.greedy(PROMPT, 20)


def test_log_probabilities_are_those_of_the_model(generation_model, plain):
    text = begun(max_tokens=5, logprobs=1)
    generate(generation_model, text)
    token_ids = list(PROMPT)
    for choice in text.take_delta().choices:
        assert choice.log_prob == pytest.approx(
            log_softmax(plain.decoder_scores(token_ids))[choice.token_id], abs=1e-4
        )
        token_ids.append(choice.token_id)


def test_the_most_probable_tokens_of_each_step(generation_model, plain):
    text = begun(max_tokens=3, logprobs=4)
    generate(generation_model, text)
    [first, *_] = text.take_delta().choices
    logs = log_softmax(plain.decoder_scores(PROMPT))
    assert [number for number, _ in first.others] == np.argsort(-logs)[:4].tolist()
    assert [log for _, log in first.others] == pytest.approx(sorted(logs)[:-5:-1], abs=1e-4)


def test_a_repetition_penalty_is_applied(generation_model, plain):
    def penalized(scores, earlier):
        for number in set(earlier):
            scores[number] *= 3 if scores[number] < 0 else 1 / 3
        return scores

    text = begun(max_tokens=16, repetition_penalty=3.0)
    generate(generation_model, text)
    expected = greedy(plain.decoder_scores, PROMPT, 16, penalized)
    assert text.token_ids == expected != plain.greedy(PROMPT, 16)


def test_no_n_gram_is_repeated(generation_model, plain):
    text = begun(max_tokens=60, no_repeat_ngram_size=1)
    generate(generation_model, text)
    assert len(set(text.token_ids)) == len(text.token_ids)
    assert len(set(plain.greedy(PROMPT, 60))) < 60


def test_banned_tokens_are_not_generated(generation_model, plain):
    [first, second, *_] = plain.greedy(PROMPT, 5)
    one, both = (
        begun(max_tokens=5, bad_words=("x",), banned=(run,)) for run in ((first,), (first, second))
    )
    generate(generation_model, one)
    generate(generation_model, both)
    assert first not in one.token_ids
    assert both.token_ids[0] == first
    assert both.token_ids[1] != second


def test_tokens_sampled_by_the_library_follow_the_probabilities(generation_model, plain):
    texts = [begun(max_tokens=1, temperature=0.5, top_k=3) for _ in range(600)]
    generate(generation_model, *texts)
    counts = np.bincount([each.token_ids[0] for each in texts], minlength=len(TOKENS)) / 600
    scores = plain.decoder_scores(PROMPT) / 0.5
    scores[scores < np.sort(scores)[-3]] = -np.inf
    np.testing.assert_allclose(counts, np.exp(log_softmax(scores)), atol=0.08)


def test_a_seed_repeats_the_text_regardless_of_other_calls(generation_model):
    def seeded(seed):
        text = begun(max_tokens=24, temperature=1.2, top_p=0.95, seed=seed)
        generate(generation_model, text)
        return text.token_ids

    first = seeded(11)
    generate(generation_model, begun(max_tokens=7, temperature=1.0))
    assert seeded(11) == first
    assert seeded(12) != first


@pytest.mark.parametrize("seeds", [range(300), [None] * 300])
def test_tokens_sampled_by_the_backend_follow_the_probabilities(generation_model, plain, seeds):
    counts = np.zeros(len(TOKENS))
    for seed in seeds:
        text = begun(max_tokens=1, temperature=0.5, top_k=3, seed=seed, logprobs=2)
        generate(generation_model, text)
        counts[text.token_ids[0]] += 1 / 300
    scores = plain.decoder_scores(PROMPT) / 0.5
    scores[scores < np.sort(scores)[-3]] = -np.inf
    np.testing.assert_allclose(counts, np.exp(log_softmax(scores)), atol=0.1)


def best_of(scores_of, token_ids, length):
    """Return the most probable texts of `length` tokens and their log probabilities, best first."""
    found = [([], 0.0)]
    for _ in range(length):
        grown = []
        for earlier, log_prob in found:
            scores = scores_of([*token_ids, *earlier])
            scores[END] = -np.inf
            grown += [
                ([*earlier, number], log_prob + log)
                for number, log in enumerate(log_softmax(scores))
            ]
        found = sorted(grown, key=lambda each: -each[1])[:4000]
    return found


def test_a_beam_search_finds_better_texts(generation_model, plain):
    text = begun(max_tokens=2, min_tokens=2, beam_width=60, n=3, length_penalty=1.0)
    [hypotheses] = generation_model.search([text])
    expected = best_of(plain.decoder_scores, PROMPT, 2)[:3]
    assert [each.token_ids for each in hypotheses] == [token_ids for token_ids, _ in expected]
    assert [each.log_prob for each in hypotheses] == pytest.approx(
        [log for _, log in expected], abs=1e-3
    )


def test_the_log_probability_does_not_depend_on_the_length_penalty(generation_model):
    [[one, _]] = generation_model.search(
        [begun(max_tokens=3, min_tokens=3, beam_width=4, n=2, length_penalty=0.0)]
    )
    [[other, _]] = generation_model.search(
        [begun(max_tokens=3, min_tokens=3, beam_width=4, n=2, length_penalty=1.0)]
    )
    assert (one.token_ids, one.log_prob) == (
        other.token_ids,
        pytest.approx(other.log_prob, abs=1e-4),
    )


def test_an_encoder_decoder_model_continues_a_prefix(translating, translator):
    plain, source, prefix = translator[1], token_ids_of("abc"), token_ids_of("x")
    scores_of = lambda token_ids: plain.translator_scores(source, [START, *token_ids])  # noqa: E731
    texts = [begun(prefix, source, max_tokens=6), begun([], source, max_tokens=6)]
    generate(translating, texts[0])
    generate(translating, texts[1])
    assert texts[0].token_ids == greedy(scores_of, prefix, 6)
    assert texts[1].token_ids == greedy(scores_of, [], 6)


def test_encoder_decoder_texts_with_and_without_a_prefix_in_one_call(translating, translator):
    plain, source = translator[1], token_ids_of("abc")
    scores_of = lambda token_ids: plain.translator_scores(source, [START, *token_ids])  # noqa: E731
    texts = [
        begun(token_ids_of(prefix), source, max_tokens=5, logprobs=1) for prefix in ("", "xy", "x")
    ]
    generate(translating, *texts)
    for each, prefix in zip(texts, ("", "xy", "x"), strict=True):
        assert each.token_ids == greedy(scores_of, token_ids_of(prefix), 5)


def test_a_text_of_an_encoder_decoder_model_continues_in_another_call(translating, translator):
    plain, source = translator[1], token_ids_of("abc")
    text = begun([], source, max_tokens=9)
    for pause in (2, 5, 9):
        translating.write(
            [text],
            call_options(text),
            lambda _p, number, log, _s, pause=pause: (
                text.add(number, log) or len(text.token_ids) >= pause
            ),
        )
    assert text.token_ids == greedy(
        lambda token_ids: plain.translator_scores(source, [START, *token_ids]), [], 9
    )


def test_a_beam_search_of_an_encoder_decoder_model_finds_better_texts(translating, translator):
    plain, source, prefix = translator[1], token_ids_of("abc"), token_ids_of("x")
    text = begun(prefix, source, max_tokens=2, min_tokens=2, beam_width=60, n=2)
    [hypotheses] = translating.search([text])
    expected = best_of(
        lambda token_ids: plain.translator_scores(source, [START, *token_ids]), prefix, 2
    )[:2]
    assert [each.token_ids for each in hypotheses] == [token_ids for token_ids, _ in expected]
    assert [each.log_prob for each in hypotheses] == pytest.approx(
        [log for _, log in expected], abs=1e-3
    )
