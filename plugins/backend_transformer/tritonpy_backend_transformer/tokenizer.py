"""Conversion between text and tokens by a model's `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tritonpy import InvalidArgument
from tritonpy_backend_transformer.runtime import tokenizer_runtime
from tritonpy_backend_transformer.vocabulary import Vocabulary

# The tokenizer's text for the bytes of an incomplete character.
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
# Prompt tokens that can influence the text of the next token; a character has at most 4 tokens.
_CONTEXT = 8
# Share of a model's tokens: converters and training pad vocabularies by less than that.
_MAX_UNKNOWN = 0.05


class Tokenizer:
    """A tokenizer that takes and returns the token IDs of the model's vocabularies, not its own."""

    def __init__(self, path: Path, source: Vocabulary, target: Vocabulary) -> None:
        """Read `path`. Raises `InvalidArgument` for an invalid file or one of another model."""
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
        self._own_ids = [texts.get(token) for token in target.tokens]

    def encode(self, text: str, add_special_tokens: bool = True) -> list[str]:
        """Return the tokens of `text`, including special tokens if `add_special_tokens`."""
        tokens: list[str] = self._tokenizer.encode(
            text, add_special_tokens=add_special_tokens
        ).tokens
        return tokens

    def encode_all(self, texts: Sequence[str]) -> list[tuple[list[str], list[int]]]:
        """Return the tokens of each text, with special tokens, and the tokens' segment indexes."""
        return [
            (encoding.tokens, encoding.type_ids)
            for encoding in self._tokenizer.encode_batch(list(texts))
        ]

    def token_ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the IDs of `tokens` in the target vocabulary, without unknown tokens."""
        known = self._target.token_ids
        return [known[token] for token in tokens if token in known]

    def decode(self, token_ids: Sequence[int], skip_special: bool = True) -> str:
        """Return the text of token IDs of the target vocabulary."""
        own = [self._own_ids[token_id] for token_id in token_ids]
        text: str = self._tokenizer.decode(
            [token_id for token_id in own if token_id is not None], skip_special
        )
        return text


class Detokenizer:
    """Converts tokens to text as they are generated.

    The concatenated pieces equal the text that `Tokenizer.decode` returns for all tokens, after the
    text of the tokens in `context`. A token's text may depend on the previous token (a space
    between words), and a character may need several tokens. So the last few tokens are decoded
    again with each new one, and an incomplete character is held back.
    """

    def __init__(
        self, tokenizer: Tokenizer, skip_special: bool = True, context: Sequence[int] = ()
    ) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._token_ids = list(context[-_CONTEXT:])
        self._begin = 0  # the first token that is decoded again
        self._emitted = len(self._token_ids)  # the text of earlier tokens was returned

    def add(self, token_id: int) -> str:
        """Return the text that the token `token_id` completes."""
        self._token_ids.append(token_id)
        return self._new_text(complete_only=True)

    def flush(self) -> str:
        """Return the remaining text: bytes of incomplete characters."""
        return self._new_text(complete_only=False)

    def _new_text(self, complete_only: bool) -> str:
        token_ids, decode = self._token_ids, self._tokenizer.decode
        old = decode(token_ids[self._begin : self._emitted], self._skip_special)
        text = decode(token_ids[self._begin :], self._skip_special)
        if len(text) <= len(old) or (complete_only and text.endswith(_INCOMPLETE)):
            return ""
        self._begin, self._emitted = self._emitted, len(token_ids)
        return text[len(old) :]


def _check(path: Path, texts: dict[str, int], special: set[str], vocabulary: Vocabulary) -> None:
    known = vocabulary.token_ids
    lacking = [text for text in texts if text not in known and text not in special]
    unknown = sum(text not in texts for text in vocabulary.tokens)
    if lacking or unknown > _MAX_UNKNOWN * len(vocabulary):
        which = f", among them '{lacking[0]}'" if lacking else ""
        raise InvalidArgument(
            f"'{path}' belongs to another model: it has {len(texts)} tokens, "
            f"the model's vocabulary has {len(vocabulary)};"
            f" {len(lacking)} of its tokens are not in the vocabulary{which}, "
            f"{unknown} tokens of the vocabulary are not in it"
        )
