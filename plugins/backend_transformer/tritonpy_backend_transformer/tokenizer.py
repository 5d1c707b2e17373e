"""Text to tokens and back, by the `tokenizer.json` of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.runtime import tokenizer_runtime
from tritonpy_backend_transformer.vocabulary import Vocabulary

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"  # what the tokenizer writes for bytes that are not yet a character
_CONTEXT = 8  # tokens of a prompt that may decide on the text of the first one behind it: a character has at most four
_MOST_UNKNOWN = 0.05  # of a model's tokens: converters and training pad a vocabulary, by no more than that


class Tokenizer:
    """Numbers in and out are those of the model's vocabularies, which may differ from the tokenizer's own."""

    def __init__(self, path: Path, source: Vocabulary, target: Vocabulary) -> None:
        """Read `path`; raises InvalidArgument for a file that is none, or one that belongs to another model."""
        try:
            self._tokenizer: Any = tokenizer_runtime().Tokenizer.from_file(str(path))
        except Exception as error:
            raise InvalidArgument(f"'{path}' cannot be read: {error}") from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        texts: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        special = {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}
        for vocabulary in {id(each): each for each in (source, target)}.values():
            _check(path, texts, special, vocabulary)
        self._source = source
        self._target = target
        self._own_numbers = [texts.get(token) for token in target.tokens]

    def encode(self, text: str, special: bool = True) -> list[str]:
        """Return the tokens of `text`, with those round it that the tokenizer adds where `special` is set."""
        tokens: list[str] = self._tokenizer.encode(text, add_special_tokens=special).tokens
        return tokens

    def encode_all(self, texts: Sequence[str]) -> list[tuple[list[str], list[int]]]:
        """Return the tokens of each text, with those round it that the tokenizer adds, and which of two texts each token belongs to."""
        return [(encoding.tokens, encoding.type_ids) for encoding in self._tokenizer.encode_batch(list(texts))]

    def numbers(self, tokens: Sequence[str]) -> list[int]:
        """Return the numbers of `tokens` in the target vocabulary, without those that it lacks."""
        known = self._target.numbers
        return [known[token] for token in tokens if token in known]

    def decode(self, numbers: Sequence[int], skip_special: bool = True) -> str:
        """Return the text of tokens of the target vocabulary."""
        own = [self._own_numbers[number] for number in numbers]
        text: str = self._tokenizer.decode([number for number in own if number is not None], skip_special)
        return text


class Detokenizer:
    """Turns tokens into text as they come. The pieces joined are what `Tokenizer.decode` makes of all tokens at once, behind the text of the
    tokens `before`.

    A token's text may depend on the one before (a space between words), and a character may need several tokens: so a few tokens are decoded
    again with each new one, and a character waits until it is whole.
    """

    def __init__(self, tokenizer: Tokenizer, skip_special: bool = True, before: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._numbers = list(before[-_CONTEXT:])
        self._begin = 0  # from here on the tokens are decoded again
        self._told = len(self._numbers)  # the text of the tokens up to here is out

    def add(self, number: int) -> str:
        """Return the text that the token `number` completes."""
        self._numbers.append(number)
        return self._new_text(whole=True)

    def flush(self) -> str:
        """Return what is left: bytes that are no character."""
        return self._new_text(whole=False)

    def _new_text(self, whole: bool) -> str:
        numbers, decode = self._numbers, self._tokenizer.decode
        old = decode(numbers[self._begin : self._told], self._skip_special)
        text = decode(numbers[self._begin :], self._skip_special)
        if len(text) <= len(old) or (whole and text.endswith(_INCOMPLETE)):
            return ""
        self._begin, self._told = self._told, len(numbers)
        return text[len(old) :]


def _check(path: Path, texts: dict[str, int], special: set[str], vocabulary: Vocabulary) -> None:
    known = vocabulary.numbers
    lacking = [text for text in texts if text not in known and text not in special]
    unknown = sum(text not in texts for text in vocabulary.tokens)
    if lacking or unknown > _MOST_UNKNOWN * len(vocabulary):
        which = f", among them '{lacking[0]}'" if lacking else ""
        raise InvalidArgument(
            f"'{path}' belongs to another model: it has {len(texts)} tokens, the model's vocabulary {len(vocabulary)};"
            f" {len(lacking)} of its tokens are not in the vocabulary{which}, {unknown} of the vocabulary's are not in it"
        )
