"""Normal form of responses: without ports, times, temporary folders and addresses."""

from __future__ import annotations

import re
from typing import Any

RULES = (
    (
        re.compile(
            r"^  \S*/(?:triton_python_backend_utils\.py|tritonpy_worker/\S+)\(\d+\): \w+\n",
            re.MULTILINE,
        ),
        "",
    ),  # frames of the API itself
    (re.compile(r"/tmp/(?:folder|tritonpy[-_])\w+"), "<temporary folder>"),
    (
        re.compile(
            r"The following argument types are supported:.*?Invoked with: .*?(?=\n\nAt:|\Z)",
            re.DOTALL,
        ),
        "<signatures and arguments>",
    ),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address and port>"),
    (re.compile(r"triton_python_backend_shm_region_[\w-]+"), "<shared memory>"),
)
VOLATILE_KEYS = {"ns", "last_inference"}


def normalized(response: Any, folders: dict[str, str] | None = None) -> Any:
    """Return a response without volatile values; `folders` maps the server's paths to placeholders."""
    if isinstance(response, dict):
        return {
            key: normalized(value, folders)
            for key, value in response.items()
            if key not in VOLATILE_KEYS
        }
    if isinstance(response, list):
        return [normalized(value, folders) for value in response]
    if isinstance(response, str):
        return _text(response, folders or {})
    return response


def _text(text: str, folders: dict[str, str]) -> str:
    for folder, name in folders.items():
        text = text.replace(folder, name)
    for pattern, name in RULES:
        text = pattern.sub(name, text)
    return text
