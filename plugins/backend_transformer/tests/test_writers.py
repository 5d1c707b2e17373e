"""What the library writes is what the weights say in plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tritonpy_backend_transformer.continuation import Continuation, Prompt
from tritonpy_backend_transformer.folder import read_folder
from tritonpy_backend_transformer.opening import Place, open_model
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.settings import settings
from tritonpy_backend_transformer.sharing import shared_options
from tritonpy_backend_transformer.writers import Decoder, EncoderDecoder

from .listening import Ear
from .tiny_models import END, START, TOKENS, log_softmax, numbers_of

PROMPT = [START, *numbers_of("hallo")]


def opened(path):
    folder = read_folder(path)
    model = open_model(folder, settings({}, translates=False), Place("cpu", (0,)), 1, 1)
    return folder, model


@pytest.fixture(scope="module")
def writer(decoder):
    return Decoder(*opened(decoder[0]))


@pytest.fixture(scope="module")
def plain(decoder):
    return decoder[1]


@pytest.fixture(scope="module")
def translating(translator):
    return EncoderDecoder(*opened(translator[0]))


def begun(numbers=PROMPT, source=(), bad=(), **sampling):
    prompt = Prompt([TOKENS[number] for number in numbers], [TOKENS[number] for number in source])
    return Continuation(Ear(), prompt, Sampling(**sampling), {END}, None, 0, bad)


def write(writer, *texts):
    """Continue texts in one call, and in further ones while some are not through: those of a lot of their own."""

    def on_token(place, number, log_prob, scores):
        each = texts[place]
        return each.add(number, log_prob) if scores is None else each.look(number, scores, log_prob)

    while open_texts := [each for each in texts if each.finish is None]:
        assert open_texts == list(texts) or len(texts) == 1
        writer.write(open_texts, shared_options(open_texts[0]), on_token)


def greedy(scores_of, numbers, count, change=lambda scores, earlier: scores):
    """Return the most probable tokens one after the other, where `change` may change their scores."""
    found = []
    while len(found) < count:
        best = int(np.argmax(change(scores_of([*numbers, *found]).copy(), found)))
        if best == END:
            break
        found.append(best)
    return found


def test_texts_of_several_lengths_in_one_call(writer, plain):
    texts = [begun(PROMPT[:size], max_tokens=12) for size in (2, 4, 6)]
    write(writer, *texts)
    for each, size in zip(texts, (2, 4, 6), strict=True):
        assert each.numbers == plain.greedy(PROMPT[:size], 12)


def test_a_text_goes_on_where_another_call_stopped(writer, plain):
    text = begun(max_tokens=20)
    for pause in (3, 9, 20):
        writer.write(
            [text],
            shared_options(text),
            lambda _p, number, log, _s, pause=pause: text.add(number, log) or len(text.numbers) >= pause,
        )
        assert len(text.numbers) == pause
    assert text.numbers == plain.greedy(PROMPT, 20)


def test_log_probabilities_are_those_of_the_model(writer, plain):
    text = begun(max_tokens=5, logprobs=1)
    write(writer, text)
    numbers = list(PROMPT)
    for choice in text.news().choices:
        assert choice.log_prob == pytest.approx(log_softmax(plain.decoder_scores(numbers))[choice.number], abs=1e-4)
        numbers.append(choice.number)


def test_the_most_probable_tokens_of_each_step(writer, plain):
    text = begun(max_tokens=3, logprobs=4)
    write(writer, text)
    [first, *_] = text.news().choices
    logs = log_softmax(plain.decoder_scores(PROMPT))
    assert [number for number, _ in first.others] == np.argsort(-logs)[:4].tolist()
    assert [log for _, log in first.others] == pytest.approx(sorted(logs)[:-5:-1], abs=1e-4)


def test_a_repetition_penalty(writer, plain):
    def penalised(scores, earlier):
        for number in set(earlier):
            scores[number] *= 3 if scores[number] < 0 else 1 / 3
        return scores

    text = begun(max_tokens=16, repetition_penalty=3.0)
    write(writer, text)
    expected = greedy(plain.decoder_scores, PROMPT, 16, penalised)
    assert text.numbers == expected != plain.greedy(PROMPT, 16)


def test_no_run_of_tokens_comes_twice(writer, plain):
    text = begun(max_tokens=60, no_repeat_ngram_size=1)
    write(writer, text)
    assert len(set(text.numbers)) == len(text.numbers)
    assert len(set(plain.greedy(PROMPT, 60))) < 60


def test_tokens_that_must_not_come(writer, plain):
    [first, second, *_] = plain.greedy(PROMPT, 5)
    one, both = (begun(max_tokens=5, bad_words=("x",), bad=(run,)) for run in ((first,), (first, second)))
    write(writer, one)
    write(writer, both)
    assert first not in one.numbers
    assert both.numbers[0] == first
    assert both.numbers[1] != second


def test_draws_of_the_library_follow_the_probabilities(writer, plain):
    texts = [begun(max_tokens=1, temperature=0.5, top_k=3) for _ in range(600)]
    write(writer, *texts)
    counts = np.bincount([each.numbers[0] for each in texts], minlength=len(TOKENS)) / 600
    scores = plain.decoder_scores(PROMPT) / 0.5
    scores[scores < np.sort(scores)[-3]] = -np.inf
    np.testing.assert_allclose(counts, np.exp(log_softmax(scores)), atol=0.08)


def test_a_seed_draws_the_same_text_again_whatever_happens_between(writer):
    def seeded(seed):
        text = begun(max_tokens=24, temperature=1.2, top_p=0.95, seed=seed)
        write(writer, text)
        return text.numbers

    first = seeded(11)
    write(writer, begun(max_tokens=7, temperature=1.0))
    assert seeded(11) == first
    assert seeded(12) != first


@pytest.mark.parametrize("seeds", [range(300), [None] * 300])
def test_draws_outside_the_library_follow_the_probabilities(writer, plain, seeds):
    counts = np.zeros(len(TOKENS))
    for seed in seeds:
        text = begun(max_tokens=1, temperature=0.5, top_k=3, seed=seed, logprobs=2)
        write(writer, text)
        counts[text.numbers[0]] += 1 / 300
    scores = plain.decoder_scores(PROMPT) / 0.5
    scores[scores < np.sort(scores)[-3]] = -np.inf
    np.testing.assert_allclose(counts, np.exp(log_softmax(scores)), atol=0.1)


def best_of(scores_of, numbers, length):
    """Return all texts of `length` tokens that do not end before, the most probable first, with their log probabilities. For tiny lengths."""
    found = [([], 0.0)]
    for _ in range(length):
        grown = []
        for earlier, log_prob in found:
            scores = scores_of([*numbers, *earlier])
            scores[END] = -np.inf
            grown += [([*earlier, number], log_prob + log) for number, log in enumerate(log_softmax(scores))]
        found = sorted(grown, key=lambda each: -each[1])[:4000]
    return found


def test_a_beam_search_finds_better_texts(writer, plain):
    text = begun(max_tokens=2, min_tokens=2, beam_width=60, n=3, length_penalty=1.0)
    [hypotheses] = writer.search([text])
    expected = best_of(plain.decoder_scores, PROMPT, 2)[:3]
    assert [each.numbers for each in hypotheses] == [numbers for numbers, _ in expected]
    assert [each.log_prob for each in hypotheses] == pytest.approx([log for _, log in expected], abs=1e-3)


def test_a_search_without_a_penalty_gives_the_same_log_probability(writer):
    [[one, _]] = writer.search([begun(max_tokens=3, min_tokens=3, beam_width=4, n=2, length_penalty=0.0)])
    [[other, _]] = writer.search([begun(max_tokens=3, min_tokens=3, beam_width=4, n=2, length_penalty=1.0)])
    assert (one.numbers, one.log_prob) == (other.numbers, pytest.approx(other.log_prob, abs=1e-4))


def test_an_encoder_decoder_model_continues_a_prefix(translating, translator):
    plain, source, prefix = translator[1], numbers_of("abc"), numbers_of("x")
    scores_of = lambda numbers: plain.translator_scores(source, [START, *numbers])  # noqa: E731
    texts = [begun(prefix, source, max_tokens=6), begun([], source, max_tokens=6)]
    write(translating, texts[0])
    write(translating, texts[1])
    assert texts[0].numbers == greedy(scores_of, prefix, 6)
    assert texts[1].numbers == greedy(scores_of, [], 6)


def test_encoder_decoder_texts_with_and_without_a_prefix_in_one_call(translating, translator):
    plain, source = translator[1], numbers_of("abc")
    scores_of = lambda numbers: plain.translator_scores(source, [START, *numbers])  # noqa: E731
    texts = [begun(numbers_of(prefix), source, max_tokens=5, logprobs=1) for prefix in ("", "xy", "x")]
    write(translating, *texts)
    for each, prefix in zip(texts, ("", "xy", "x"), strict=True):
        assert each.numbers == greedy(scores_of, numbers_of(prefix), 5)


def test_an_encoder_decoder_model_goes_on_where_another_call_stopped(translating, translator):
    plain, source = translator[1], numbers_of("abc")
    text = begun([], source, max_tokens=9)
    for pause in (2, 5, 9):
        translating.write(
            [text],
            shared_options(text),
            lambda _p, number, log, _s, pause=pause: text.add(number, log) or len(text.numbers) >= pause,
        )
    assert text.numbers == greedy(lambda numbers: plain.translator_scores(source, [START, *numbers]), [], 9)


def test_a_beam_search_of_an_encoder_decoder_model(translating, translator):
    plain, source, prefix = translator[1], numbers_of("abc"), numbers_of("x")
    text = begun(prefix, source, max_tokens=2, min_tokens=2, beam_width=60, n=2)
    [hypotheses] = translating.search([text])
    expected = best_of(lambda numbers: plain.translator_scores(source, [START, *numbers]), prefix, 2)[:2]
    assert [each.numbers for each in hypotheses] == [numbers for numbers, _ in expected]
    assert [each.log_prob for each in hypotheses] == pytest.approx([log for _, log in expected], abs=1e-3)
