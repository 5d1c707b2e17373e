from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.tokenizer import Detokenizer, Tokenizer
from tritonpy_backend_transformer.vocabulary import Vocabulary

from .tiny_models import END, START, TOKENS, token_ids_of, write_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return Tokenizer(folder / "tokenizer.json", Vocabulary(TOKENS), Vocabulary(TOKENS))


def test_text_becomes_tokens(tokenizer):
    assert tokenizer.encode("he w") == ["<s>", "he", "Ġw"]
    assert tokenizer.encode("he", add_special_tokens=False) == ["he"]
    assert tokenizer.encode_all(["a", "he"]) == [(["<s>", "a"], [0, 0]), (["<s>", "he"], [0, 0])]


def test_tokens_become_text(tokenizer):
    token_ids = [START, *token_ids_of("é €"), END]
    assert tokenizer.decode(token_ids) == "é €"
    assert tokenizer.decode(token_ids, skip_special=False) == "<s>é €</s>"


def test_an_incomplete_character_is_held_back(tokenizer):
    words = Detokenizer(tokenizer)
    assert [words.add(number) for number in token_ids_of("a€b")] == ["a", "", "", "€", "b"]
    assert words.flush() == ""


def test_incomplete_characters_are_flushed_at_the_end(tokenizer):
    words = Detokenizer(tokenizer)
    assert [words.add(number) for number in token_ids_of("a€")[:-1]] == ["a", "", ""]
    assert words.flush() == "\N{REPLACEMENT CHARACTER}"


def test_special_tokens_are_skipped_by_default(tokenizer):
    assert [
        Detokenizer(tokenizer).add(END),
        Detokenizer(tokenizer, skip_special=False).add(END),
    ] == [
        "",
        "</s>",
    ]


@given(token_ids=st.lists(st.integers(0, len(TOKENS) - 1), max_size=12))
def test_the_joined_pieces_are_the_whole_text(tokenizer, token_ids):
    words = Detokenizer(tokenizer)
    pieces = [words.add(number) for number in token_ids]
    assert "".join(pieces) + words.flush() == tokenizer.decode(token_ids)


@pytest.mark.parametrize(
    ("context", "expected"),
    [([], "cat"), (["<s>"], "cat"), (["<s>", "▁the"], " cat"), (["▁a"] * 20, " cat")],
)
def test_the_first_word_after_a_prompt_has_a_space(tmp_path, context, expected):
    tokens = ["<s>", "▁the", "▁cat", "▁a"]
    own = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({token: number for number, token in enumerate(tokens)})
    )
    own.add_special_tokens(["<s>"])
    # As in Llama: removes the space before the first word.
    own.decoder = tokenizers.decoders.Metaspace()
    own.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json", Vocabulary(tokens), Vocabulary(tokens))
    words = Detokenizer(tokenizer, context=tokenizer.token_ids([*context, "of another vocabulary"]))
    assert [words.add(2), words.add(3), words.flush()] == [expected, " a", ""]


@given(text=st.text())
def test_any_text_survives_a_round_trip(tokenizer, text):
    words = Detokenizer(tokenizer)
    token_ids = [TOKENS.index(token) for token in tokenizer.encode(text, add_special_tokens=False)]
    if not {0, START, END} & set(token_ids):
        assert "".join([words.add(number) for number in token_ids]) == text


def test_a_vocabulary_may_have_another_order(tmp_path):
    write_tokenizer(tmp_path)
    reordered = list(reversed(TOKENS))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json", Vocabulary(reordered), Vocabulary(reordered))
    assert tokenizer.decode([reordered.index("he"), reordered.index("Ġw")]) == "he w"


@pytest.mark.parametrize(
    ("vocabulary", "text"),
    [
        (TOKENS[:100], "it has 261 tokens, the model's vocabulary has 100; 161 of its tokens are not in the vocabulary, among them '"),
        ([*TOKENS, *(f"more{number}" for number in range(100))], "0 of its tokens are not in the vocabulary, 100 tokens of the vocabulary are not in it"),
    ],
)  # fmt: skip
def test_the_tokenizer_of_another_model_is_rejected(tmp_path, vocabulary, text):
    write_tokenizer(tmp_path)
    with pytest.raises(InvalidArgument) as caught:
        Tokenizer(tmp_path / "tokenizer.json", Vocabulary(vocabulary), Vocabulary(vocabulary))
    assert "belongs to another model" in caught.value.message
    assert text in caught.value.message


def test_padding_tokens_are_accepted(tmp_path):
    write_tokenizer(tmp_path)
    padded = Vocabulary([*TOKENS, "pad0", "pad1"])
    assert Tokenizer(tmp_path / "tokenizer.json", padded, padded).decode([len(TOKENS), 3]) == "!"


def test_an_invalid_tokenizer_is_rejected(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Tokenizer(tmp_path / "tokenizer.json", Vocabulary(TOKENS), Vocabulary(TOKENS))
