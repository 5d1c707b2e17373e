"""Parsers of tool calls, one for each format in which models write them.

A parser reads the text of a model while it is generated, and reports names and arguments as they
grow. `PARSERS` has their names.
"""

from __future__ import annotations

from tritonpy_frontend_openai.output import OutputParser
from tritonpy_frontend_openai.tool_calls.json_formats import (
    HermesCalls,
    JsonArrayCalls,
    LlamaJsonCalls,
    MistralCalls,
)
from tritonpy_frontend_openai.tool_calls.pythonic import PythonicCalls

__all__ = ["PARSERS", "JsonArrayCalls"]

PARSERS: dict[str, type[OutputParser]] = {
    "hermes": HermesCalls,
    "llama3_json": LlamaJsonCalls,
    "mistral": MistralCalls,
    "pythonic": PythonicCalls,
}
"""The parsers by their names in the settings of a model."""
