from __future__ import annotations

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.tokenizer import Detokenizer, Tokenizer
from tritonpy_backend_transformer.vocabulary import Vocabulary

from .tiny_models import END, START, TOKENS, numbers_of, write_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return Tokenizer(folder / "tokenizer.json", Vocabulary(TOKENS), Vocabulary(TOKENS))


def test_text_becomes_tokens(tokenizer):
    assert tokenizer.encode("he w") == ["<s>", "he", "Ġw"]
    assert tokenizer.encode("he", special=False) == ["he"]
    assert tokenizer.encode_all(["a", "he"]) == [(["<s>", "a"], [0, 0]), (["<s>", "he"], [0, 0])]


def test_tokens_become_text(tokenizer):
    numbers = [START, *numbers_of("é €"), END]
    assert tokenizer.decode(numbers) == "é €"
    assert tokenizer.decode(numbers, skip_special=False) == "<s>é €</s>"


def test_a_character_waits_until_it_is_whole(tokenizer):
    words = Detokenizer(tokenizer)
    assert [words.add(number) for number in numbers_of("a€b")] == ["a", "", "", "€", "b"]
    assert words.flush() == ""


def test_bytes_that_are_no_character_come_at_the_end(tokenizer):
    words = Detokenizer(tokenizer)
    assert [words.add(number) for number in numbers_of("a€")[:-1]] == ["a", "", ""]
    assert words.flush() == "\N{REPLACEMENT CHARACTER}"


def test_special_tokens_are_left_out_unless_they_are_wanted(tokenizer):
    assert [Detokenizer(tokenizer).add(END), Detokenizer(tokenizer, skip_special=False).add(END)] == ["", "</s>"]


@given(numbers=st.lists(st.integers(0, len(TOKENS) - 1), max_size=12))
def test_pieces_joined_are_the_whole_text(tokenizer, numbers):
    words = Detokenizer(tokenizer)
    pieces = [words.add(number) for number in numbers]
    assert "".join(pieces) + words.flush() == tokenizer.decode(numbers)


@pytest.mark.parametrize(
    ("before", "said"), [([], "cat"), (["<s>"], "cat"), (["<s>", "▁the"], " cat"), (["▁a"] * 20, " cat")]
)
def test_a_word_behind_the_words_of_a_prompt_has_its_space(tmp_path, before, said):
    tokens = ["<s>", "▁the", "▁cat", "▁a"]
    own = tokenizers.Tokenizer(tokenizers.models.WordLevel({token: number for number, token in enumerate(tokens)}))
    own.add_special_tokens(["<s>"])
    own.decoder = tokenizers.decoders.Metaspace()  # of Llama: the space before the first word is no part of a text
    own.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json", Vocabulary(tokens), Vocabulary(tokens))
    words = Detokenizer(tokenizer, before=tokenizer.numbers([*before, "of another vocabulary"]))
    assert [words.add(2), words.add(3), words.flush()] == [said, " a", ""]


@given(text=st.text())
def test_any_text_comes_back(tokenizer, text):
    words = Detokenizer(tokenizer)
    numbers = [TOKENS.index(token) for token in tokenizer.encode(text, special=False)]
    if not {0, START, END} & set(numbers):
        assert "".join([words.add(number) for number in numbers]) == text


def test_a_vocabulary_in_another_order_is_followed(tmp_path):
    write_tokenizer(tmp_path)
    turned = list(reversed(TOKENS))
    tokenizer = Tokenizer(tmp_path / "tokenizer.json", Vocabulary(turned), Vocabulary(turned))
    assert tokenizer.decode([turned.index("he"), turned.index("Ġw")]) == "he w"


@pytest.mark.parametrize(
    ("vocabulary", "text"),
    [
        (TOKENS[:100], "it has 261 tokens, the model's vocabulary 100; 161 of its tokens are not in the vocabulary, among them '"),
        ([*TOKENS, *(f"more{number}" for number in range(100))], "0 of its tokens are not in the vocabulary, 100 of the vocabulary's are not in it"),
    ],
)  # fmt: skip
def test_the_tokenizer_of_another_model_is_refused(tmp_path, vocabulary, text):
    write_tokenizer(tmp_path)
    with pytest.raises(InvalidArgument) as caught:
        Tokenizer(tmp_path / "tokenizer.json", Vocabulary(vocabulary), Vocabulary(vocabulary))
    assert "belongs to another model" in caught.value.message
    assert text in caught.value.message


def test_a_few_tokens_of_padding_are_no_mistake(tmp_path):
    write_tokenizer(tmp_path)
    padded = Vocabulary([*TOKENS, "pad0", "pad1"])
    assert Tokenizer(tmp_path / "tokenizer.json", padded, padded).decode([len(TOKENS), 3]) == "!"


def test_a_broken_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Tokenizer(tmp_path / "tokenizer.json", Vocabulary(TOKENS), Vocabulary(TOKENS))
