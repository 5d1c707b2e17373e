"""What may differ from one run to the next, or between two servers that are equal: ports, times, temporary folders, addresses."""

from __future__ import annotations

import re
from typing import Any

RULES = (
    (
        re.compile(r"^  \S*/(?:triton_python_backend_utils\.py|tritonpy_worker/\S+)\(\d+\): \w+\n", re.MULTILINE),
        "",
    ),  # frames of the API itself
    (re.compile(r"/tmp/(?:folder|tritonpy[-_])\w+"), "<temporary folder>"),
    (
        re.compile(r"The following argument types are supported:.*?Invoked with: .*?(?=\n\nAt:|\Z)", re.DOTALL),
        "<signatures and arguments>",
    ),
    (re.compile(r"\b0x[0-9a-f]{6,}"), "<address>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address and port>"),
    (re.compile(r"triton_python_backend_shm_region_[\w-]+"), "<shared memory>"),
)
VOLATILE_KEYS = {"ns", "last_inference"}


def normal(answer: Any, folders: dict[str, str] | None = None) -> Any:
    """Return an answer without what is volatile; `folders` names paths that are the server's own, and what stands for them."""
    if isinstance(answer, dict):
        return {key: normal(value, folders) for key, value in answer.items() if key not in VOLATILE_KEYS}
    if isinstance(answer, list):
        return [normal(value, folders) for value in answer]
    if isinstance(answer, str):
        return _text(answer, folders or {})
    return answer


def _text(text: str, folders: dict[str, str]) -> str:
    for folder, name in folders.items():
        text = text.replace(folder, name)
    for pattern, name in RULES:
        text = pattern.sub(name, text)
    return text
