"""The sampling parameters of a body, and the checks that chats and completions share."""

from __future__ import annotations

from typing import Any

from tritonpy_frontend_openai.bodies import CommonBody
from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.text_models import TextModel

TRITON_MAX_TOKENS = 16
"""max_tokens of a request that has none, in Triton's frontend and in OpenAI's completions."""

_MEMBERS = (
    "frequency_penalty",
    "presence_penalty",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "min_tokens",
    "ignore_eos",
    "logit_bias",
)


def sampling_of(body: CommonBody) -> dict[str, Any]:
    """Return the sampling parameters that the client set, by their names."""
    found = {name: value for name in _MEMBERS if (value := getattr(body, name)) is not None}
    if isinstance(found.get("stop"), str):
        found["stop"] = [found["stop"]]
    if not found.get("stop", True):
        del found["stop"]
    return found | body.sampler


def check_common(body: CommonBody, *, triton: bool) -> None:
    """Raise ApiError for what the server refuses. `triton`: also for what only Triton refuses."""
    if body.stream_options is not None and not body.stream:
        raise ApiError(
            "`stream_options` can only be used when `stream` is True", param="stream_options"
        )
    if triton and body.n is not None and body.n > 1:
        raise ApiError(
            f"Received n={body.n}, but only single choice (n=1) is currently supported", param="n"
        )


def limit_of(
    given: int | None, model: TextModel, default: int | None, *, triton: bool
) -> int | None:
    """Return max_tokens of a request.

    `default` is for models that take any number. None leaves it to the model.
    """
    if given is not None:
        return given
    if model.options.default_max_tokens is not None:
        return model.options.default_max_tokens
    if triton:
        return TRITON_MAX_TOKENS
    return default if model.has_sampling_parameters else None
