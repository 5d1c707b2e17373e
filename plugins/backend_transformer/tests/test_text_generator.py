from __future__ import annotations

from .conftest import inputs, output
from .tiny_models import START, TOKENS, token_ids_of


def test_only_invalid_requests_of_a_batch_are_rejected(decoder, load):
    folder, plain = decoder
    with load(folder) as harness:
        [bad], [good] = harness.execute(
            harness.request(inputs("x" * 200)),
            harness.request(inputs("abc", max_tokens=5), ["output_ids"]),
        )
    assert "the prompt has 201 tokens" in bad.error.message
    assert output(good, "output_ids") == plain.greedy([START, *token_ids_of("abc")], 5)


def test_a_bad_word_is_banned_at_the_beginning_and_after_a_space(speaker, load):
    for tokens in ([TOKENS.index("w")], [TOKENS.index("Ġw")], token_ids_of(" and w")):
        with load(speaker(tokens, name=f"tokens {tokens[0]}-{len(tokens)}")) as harness:
            [[allowed]] = harness.execute(
                harness.request(inputs("Hi", exclude_input_in_output=True))
            )
            [[banned]] = harness.execute(
                harness.request(inputs("Hi", exclude_input_in_output=True, bad_words="w"))
            )
        assert "w" in output(allowed)[0]
        assert "w" not in output(banned)[0]
