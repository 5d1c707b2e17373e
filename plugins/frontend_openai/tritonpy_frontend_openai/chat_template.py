"""Chat templates: Jinja templates that turn messages into the prompt of a model.

The variables and functions are those that Hugging Face's `apply_chat_template` offers. Templates
run in Jinja's sandbox. They come from the operator or from the model's files, never from a request.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock, Node
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tritonpy_frontend_openai.errors import ApiError
from tritonpy_frontend_openai.gguf_file import (
    VOCABULARY,
    GgufFault,
    first_gguf_file,
    read_gguf_metadata,
)

_CONFIG = "tokenizer_config.json"
_TEMPLATE = "chat_template.jinja"
_OLD_TEMPLATE = "chat_template.json"
MAX_FILE_BYTES = 64 * 1024 * 1024
_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")


class TemplateFault(Exception):
    """A chat template or a tokenizer file is invalid; the text names the file."""


class _GenerationTag(Extension):
    """The tag `generation`, which marks text of the assistant for training. It prints its body."""

    tags = {"generation"}  # noqa: RUF012 - the type that Jinja declares

    def parse(self, parser: Parser) -> Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Any) -> str:
        return str(caller())


class ChatTemplate:
    """A compiled template and the special tokens of its tokenizer.

    Raises TemplateFault if `text` is no valid template.
    """

    def __init__(self, text: str, tokens: Mapping[str, str], source: str) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_template_error
        environment.globals["strftime_now"] = _now
        try:
            self._template = environment.from_string(text)
        except jinja2.TemplateError as error:
            raise TemplateFault(f"the chat template {source} is invalid: {error}") from error
        self._tokens = dict(tokens)
        self._source = source

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None,
        *,
        add_generation_prompt: bool = True,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the prompt for `messages`.

        `variables` are further variables of the template, such as `enable_thinking`. Raises
        ApiError with the template's own text if it refuses the messages.
        """
        try:
            return self._template.render(
                {
                    **self._tokens,
                    **(variables or {}),
                    "messages": messages,
                    "tools": tools,
                    "documents": None,
                    "add_generation_prompt": add_generation_prompt,
                }
            )
        except jinja2.TemplateError as error:
            raise ApiError(
                f"The chat template of the model refused the messages: {error}", param="messages"
            ) from error
        except Exception as error:  # a template may raise anything, such as ZeroDivisionError
            raise ApiError(
                f"The chat template of the model failed for these messages: {error}",
                param="messages",
            ) from error


def load_template(setting: str, folder: Path | None) -> ChatTemplate | None:
    """Return the template of a model, None if it has none.

    `setting` is a template, or the path of a file with one. `folder` contains the files of the
    tokenizer. Raises TemplateFault.
    """
    config = _read_json(folder / _CONFIG) if folder is not None else {}
    tokens = {name: text for name in _TOKENS if (text := _token(config.get(name)))}
    if setting:
        text, source = _template_setting(setting, folder)
        return ChatTemplate(text, tokens, source)
    if folder is None:
        return None
    if (path := folder / _TEMPLATE).is_file():
        return ChatTemplate(_read(path), tokens, str(path))
    if not config and (gguf := first_gguf_file(folder)) is not None:
        return _gguf_template(gguf)
    text = _default_template(config.get("chat_template"))
    if not text:
        text = _default_template(_read_json(folder / _OLD_TEMPLATE).get("chat_template"))
    return ChatTemplate(text, tokens, str(folder / _CONFIG)) if text else None


def _gguf_template(path: Path) -> ChatTemplate | None:
    """Return the template in a GGUF file, None if it has none. Raises TemplateFault."""
    try:
        metadata = read_gguf_metadata(path)
    except (OSError, GgufFault) as error:
        raise TemplateFault(f"cannot read {path}: {error}") from error
    text, vocabulary = metadata.get("tokenizer.chat_template"), metadata.get(VOCABULARY)
    if not isinstance(text, str):
        return None
    tokens = {}
    for name in _TOKENS:
        number = metadata.get(f"tokenizer.ggml.{name}_id")
        if isinstance(number, int) and isinstance(vocabulary, list) and number < len(vocabulary):
            tokens[name] = vocabulary[number]
    return ChatTemplate(text, tokens, str(path))


def is_template(setting: str) -> bool:
    """Return whether a setting is a template itself, and not the path of a file."""
    return "\n" in setting or "{{" in setting or "{%" in setting


def _template_setting(setting: str, folder: Path | None) -> tuple[str, str]:
    if is_template(setting):
        return setting, "in the settings"
    path = Path(setting)
    if not path.is_absolute() and folder is not None and (folder / path).is_file():
        path = folder / path
    if not path.is_file():
        raise TemplateFault(f"the chat template {setting} does not exist")
    return _read(path), str(path)


def _default_template(value: Any) -> str:
    """Return the template of a tokenizer configuration: a text, or a list with names."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        named = {
            each["name"]: each["template"]
            for each in value
            if isinstance(each, dict) and {"name", "template"} <= each.keys()
        }
        return str(named.get("default", ""))
    return ""


def _token(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TemplateFault(f"{path} has more than {MAX_FILE_BYTES} bytes")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateFault(f"cannot read {path}: {error}") from error


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        value = json.loads(_read(path))
    except ValueError as error:
        raise TemplateFault(f"{path} is no valid JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON as models saw it in training: without HTML escapes, unlike Jinja's own filter."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _raise_template_error(message: str) -> None:
    raise jinja2.TemplateError(message)


def _now(format_: str) -> str:
    return dt.datetime.now().strftime(format_)  # noqa: DTZ005 - the date for the user
