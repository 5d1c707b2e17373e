from __future__ import annotations

from .conftest import inputs, output
from .tiny_models import START, TOKENS, numbers_of


def test_a_request_that_cannot_be_read_is_refused_and_the_others_are_not(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        [bad], [good] = harness.execute(
            harness.request(inputs("x" * 200)), harness.request(inputs("abc", max_tokens=5), ["output_ids"])
        )
    assert "the prompt has 201 tokens" in bad.error.message
    assert output(good, "output_ids") == plain.greedy([START, *numbers_of("abc")], 5)


def test_a_word_must_not_come_at_the_beginning_nor_behind_a_space(speaker, load):
    for says in ([TOKENS.index("w")], [TOKENS.index("Ġw")], numbers_of(" and w")):
        with load(speaker(says, name=f"says {says[0]}-{len(says)}")) as harness:
            [[said]] = harness.execute(harness.request(inputs("Hi", exclude_input_in_output=True)))
            [[other]] = harness.execute(harness.request(inputs("Hi", exclude_input_in_output=True, bad_words="w")))
        assert "w" in output(said)[0]
        assert "w" not in output(other)[0]
