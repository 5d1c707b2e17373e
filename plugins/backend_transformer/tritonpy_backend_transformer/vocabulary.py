"""The tokens of a model, as the library knows them: by their text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tritonpy import InvalidArgument, Unavailable


class Vocabulary:
    """Tokens by number, numbers by token."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens = tokens
        self.numbers: Mapping[str, int] = {token: number for number, token in enumerate(tokens)}

    def __len__(self) -> int:
        return len(self.tokens)

    def texts(self, numbers: Sequence[int]) -> list[str]:
        """Return the texts of tokens; raises InvalidArgument for a number that is none."""
        tokens, size = self.tokens, len(self.tokens)
        for number in numbers:
            if not 0 <= number < size:
                raise InvalidArgument(f"token {number} is not one of the model's, which has tokens 0 to {size - 1}")
        return [tokens[number] for number in numbers]


def read_vocabulary(folder: Path, *names: str) -> Vocabulary:
    """Read the first of the files `<name>.json` and `<name>.txt` that there is. Raises Unavailable where there is none, InvalidArgument for a broken one."""
    for name in names:
        as_json, as_lines = folder / f"{name}.json", folder / f"{name}.txt"
        if as_json.is_file():
            return Vocabulary(_tokens_of_json(as_json))
        if as_lines.is_file():
            return Vocabulary(as_lines.read_text(encoding="utf-8").split("\n")[:-1])
    raise Unavailable(
        f"the vocabulary of the model is missing: there is no '{names[0]}.json' in '{folder}'. The converter of CTranslate2 writes it beside model.bin"
    )


def _tokens_of_json(path: Path) -> list[str]:
    try:
        tokens = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidArgument(f"'{path}' is no JSON: {error}") from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise InvalidArgument(f"'{path}' is no list of tokens")
    return tokens
