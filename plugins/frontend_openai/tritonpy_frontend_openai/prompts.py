"""Prompts as clients send them: texts or token IDs, one or several."""

from __future__ import annotations

from typing import Any

from tritonpy_frontend_openai.errors import ApiError

Prompt = str | list[int]


def read_prompts(value: str | list[Any], member: str) -> list[Prompt]:
    """Return the prompts in `value`, the value of a member of the body. Raises ApiError."""
    if isinstance(value, str):
        return [value]
    if value and all(isinstance(each, int) for each in value):
        return [value]
    if not value or any(isinstance(each, int) for each in value):
        raise ApiError(
            f"{member} must be a text, a list of texts, token IDs, or a list of lists of token IDs",
            param=member,
        )
    return list(value)
