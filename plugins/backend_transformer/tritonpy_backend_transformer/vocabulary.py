"""The vocabulary of a model: tokens by ID and IDs by token."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonpy import InvalidArgument, Unavailable


class Vocabulary:
    """The tokens of a model by ID, and their IDs by token."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.token_ids: Mapping[str, int] = {
            token: token_id for token_id, token in enumerate(tokens)
        }

    def __len__(self) -> int:
        return len(self.tokens)

    def texts(self, token_ids: Sequence[int]) -> list[str]:
        """Return the tokens of token IDs. Raises `InvalidArgument` for an unknown ID."""
        tokens, size = self.tokens, len(self.tokens)
        for token_id in token_ids:
            if not 0 <= token_id < size:
                raise InvalidArgument(
                    f"unknown token {token_id}: the model has tokens 0 to {size - 1}"
                )
        return [tokens[token_id] for token_id in token_ids]


def read_vocabulary(folder: Path, *names: str) -> Vocabulary:
    """Read the first existing file among `<name>.json` and `<name>.txt`.

    Raises `Unavailable` if no file exists, and `InvalidArgument` if it is invalid.
    """
    for name in names:
        as_json, as_lines = folder / f"{name}.json", folder / f"{name}.txt"
        if as_json.is_file():
            return Vocabulary(_tokens_of_json(as_json))
        if as_lines.is_file():
            return Vocabulary(as_lines.read_text(encoding="utf-8").split("\n")[:-1])
    raise Unavailable(
        f"the vocabulary of the model is missing: no '{names[0]}.json' in '{folder}'."
        " CTranslate2's converter writes it next to model.bin"
    )


def _tokens_of_json(path: Path) -> list[str]:
    try:
        tokens = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"'{path}' is not valid JSON: {error}") from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise InvalidArgument(f"'{path}' is not a list of tokens")
    return tokens
