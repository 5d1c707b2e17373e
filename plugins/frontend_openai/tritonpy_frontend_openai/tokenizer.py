"""The tokenizer of a model in the file `tokenizer.json`, read with the package tokenizers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FILE = "tokenizer.json"


class TokenizerFault(ValueError):
    """A tokenizer file is invalid; the text names it."""


class FileTokenizer:
    """Counts tokens, and answers tokenize requests as models do."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def count(self, text: str, *, adds_special: bool = False) -> int:
        """Return the number of tokens of a text."""
        return len(self._tokenizer.encode(text, add_special_tokens=adds_special).ids)

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tokens of a text, or the text of tokens."""
        if "tokens" in question:
            return {"text": self._tokenizer.decode(question["tokens"], skip_special_tokens=False)}
        found = self._tokenizer.encode(
            question["text"], add_special_tokens=question["add_special_tokens"]
        )
        return {"tokens": found.ids, "pieces": found.tokens}


def load_tokenizer(folder: Path) -> FileTokenizer | None:
    """Return the tokenizer in `folder`, None without its file or without the package.

    Raises TokenizerFault if the file is invalid.
    """
    path = folder / _FILE
    if not path.is_file():
        return None
    try:
        from tokenizers import Tokenizer
    except ImportError:
        return None
    try:
        return FileTokenizer(Tokenizer.from_file(str(path)))
    except Exception as error:  # the package raises no other type
        raise TokenizerFault(f"cannot read {path}: {error}") from error
