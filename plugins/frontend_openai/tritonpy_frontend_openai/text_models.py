"""The models of the API: those that generate text or compute embeddings, and their settings."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tritonpy import Engine, InvalidArgument, NotFound, TritonError
from tritonpy.config import InvalidServerConfig, decode_options, resolve_model_file
from tritonpy.frontend import ModelMetadata, TensorMetadata
from tritonpy_frontend_openai.chat_template import (
    ChatTemplate,
    TemplateFault,
    is_template,
    load_template,
)
from tritonpy_frontend_openai.errors import ApiError, api_error, unknown_model
from tritonpy_frontend_openai.options import ModelOptions, OpenAiOptions
from tritonpy_frontend_openai.tokenizer import FileTokenizer, TokenizerFault, load_tokenizer

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

TEXT_INPUT, TEXT_OUTPUT = "text_input", "text_output"
EMBEDDING_REQUEST, EMBEDDING_OUTPUT = "embedding_request", "embedding"
TOKENIZE_REQUEST, RERANK_REQUEST = "tokenize_request", "rerank_request"
Task = Literal["generate", "embed", "rank", "tokenize"]
"""What a call needs of its model."""

_PREFIX = "openai."
_ADAPTERS = "multi_lora.json"
# Backends whose engines restrict the output to a JSON schema.
_STRUCTURED_BACKENDS = frozenset({"vllm", "llamacpp"})


class TextModel:
    """One model as the API offers it. It is replaced when the model is reloaded."""

    def __init__(
        self, metadata: ModelMetadata, config: ModelConfig, folder: str, options: ModelOptions
    ) -> None:
        self.name = metadata.name
        self.config = config
        self.backend = config.backend
        self.inputs: Mapping[str, TensorMetadata] = {each.name: each for each in metadata.inputs}
        self.outputs = frozenset(each.name for each in metadata.outputs)
        self.options = options
        self.created = int(time.time())
        self._folder = Path(folder) if folder else None
        self._template: ChatTemplate | None = None
        self._template_loaded = False
        self._tokenizer: FileTokenizer | None = None
        self._tokenizer_loaded = False

    @property
    def has_sampling_parameters(self) -> bool:
        """Whether all parameters go into one input with JSON, as in Triton's vLLM backend.

        Other models have an input per parameter, as in TensorRT-LLM, or read request parameters.
        """
        return "sampling_parameters" in self.inputs

    @property
    def generates(self) -> bool:
        """Whether the model generates text."""
        return TEXT_INPUT in self.inputs and TEXT_OUTPUT in self.outputs

    @property
    def takes_embedding_requests(self) -> bool:
        """Whether the model takes requests for embeddings as JSON, as Triton's vLLM backend."""
        return EMBEDDING_REQUEST in self.inputs

    @property
    def embeds(self) -> bool:
        """Whether the model may compute embeddings."""
        is_encoder = TEXT_INPUT in self.inputs and EMBEDDING_OUTPUT in self.outputs
        return is_encoder or self.takes_embedding_requests

    @property
    def takes_tokenize_requests(self) -> bool:
        """Whether the model tells the tokens of texts."""
        return TOKENIZE_REQUEST in self.inputs

    @property
    def ranks(self) -> bool:
        """Whether the model scores documents for a query."""
        return RERANK_REQUEST in self.inputs

    @property
    def is_structured(self) -> bool:
        """Whether the model can restrict its output to a JSON schema."""
        if self.options.structured_output is not None:
            return self.options.structured_output
        return self.backend in _STRUCTURED_BACKENDS or "guided_decoding_guide" in self.inputs

    def template(self) -> ChatTemplate:
        """Return the chat template. Raises ApiError if there is none or it is invalid."""
        if not self._template_loaded:
            try:
                self._template = load_template(self.options.chat_template, self._tokenizer_folder())
            except TemplateFault as error:
                raise ApiError(f"Model '{self.name}' cannot chat: {error}", 500) from error
            self._template_loaded = True
        if self._template is None:
            raise ApiError(
                f"Model '{self.name}' has no chat template. Put chat_template.jinja or "
                "tokenizer_config.json into the folder of its version, or set "
                f"frontends.openai.models.{self.name}.chat_template in server.yaml.",
                param="model",
            )
        return self._template

    def tokenizer(self) -> FileTokenizer | None:
        """Return the tokenizer in the model's files, None without one.

        Raises ApiError if the file is invalid.
        """
        if not self._tokenizer_loaded:
            folder = self._tokenizer_folder()
            try:
                self._tokenizer = load_tokenizer(folder) if folder is not None else None
            except TokenizerFault as error:
                raise ApiError(str(error), 500) from error
            self._tokenizer_loaded = True
        return self._tokenizer

    def token_counter(self) -> FileTokenizer | None:
        """Return the tokenizer that counts tokens for a model that does not, None if none can."""
        if "num_output_tokens" in self.outputs:
            return None
        with suppress(ApiError):
            return self.tokenizer()
        return None

    @property
    def is_prepared(self) -> bool:
        """Whether the files of the model were read that its calls need."""
        return self._template_loaded and self._tokenizer_loaded

    def prepare(self) -> None:
        """Read the files of the model. It may take long: do not call it on an event loop.

        A call that needs a faulty file reads it again, and raises its error.
        """
        for read in (self.template, self.tokenizer):
            with suppress(ApiError):
                read()

    def _tokenizer_folder(self) -> Path | None:
        if not self.options.tokenizer:
            return self._folder
        folder = Path(self.options.tokenizer)
        if not folder.is_absolute() and self._folder is not None:
            folder = self._folder / folder
        return folder

    def adapters(self) -> list[str]:
        """Return the names of the LoRA adapters in `multi_lora.json`, empty if there is none."""
        path = self._folder / _ADAPTERS if self._folder is not None else None
        if path is None or not path.is_file():
            return []
        try:
            value = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return []
        return list(value) if isinstance(value, dict) else []


class TextModels:
    """Finds models by the names that clients use: names, aliases, and names with an adapter."""

    def __init__(self, engine: Engine, options: OpenAiOptions, log: logging.Logger) -> None:
        self._engine = engine
        self._options = options
        self._log = log
        self._aliases = {
            alias: name for name, model in options.models.items() for alias in model.aliases
        }
        self._models: dict[str, TextModel] = {}

    def real_name(self, name: str) -> tuple[str, str]:
        """Return the name of the model in the server and that of the adapter, "" for none."""
        separator, adapter = self._options.lora_separator, ""
        if separator and separator in name:
            name, _, adapter = name.partition(separator)
        return self._aliases.get(name, name), adapter

    def find(self, name: str) -> TextModel:
        """Return the model with this name in the server.

        Raises ApiError if it is unknown, not ready, or works with no text.
        """
        try:
            metadata = self._engine.model_metadata(name)
            config = self._engine.model_config(name)
        except (NotFound, InvalidArgument):
            self._models.pop(name, None)
            raise unknown_model(name) from None
        except TritonError as error:
            raise api_error(error) from error
        model = self._models.get(name)
        if model is None or model.config is not config:
            try:
                folder, is_loaded = self._engine.model_folder(name), True
            except TritonError:
                folder, is_loaded = "", False  # the model is loaded by its first request
            options = self._merged(name, config, folder)
            model = TextModel(metadata, config, folder, options)
            if is_loaded:  # otherwise its folder is not known yet
                self._models[name] = model
        if not (model.generates or model.embeds or model.ranks):
            raise _wrong_kind(
                f"Model '{name}' works with no text: it needs the input '{TEXT_INPUT}' and the "
                f"output '{TEXT_OUTPUT}' or '{EMBEDDING_OUTPUT}'"
            )
        return model

    def require(self, model: TextModel, task: Task) -> None:
        """Raise ApiError if the model cannot do a task."""
        name = model.name
        if task == "generate" and not model.generates:
            raise _wrong_kind(f"Model '{name}' has embeddings and generates no text")
        if task == "embed" and not model.embeds:
            raise _wrong_kind(
                f"Model '{name}' has no embeddings: it needs the output '{EMBEDDING_OUTPUT}' "
                f"or the input '{EMBEDDING_REQUEST}'"
            )
        if task == "rank" and not (model.ranks or model.embeds):
            raise _wrong_kind(
                f"Model '{name}' ranks nothing: it needs the input '{RERANK_REQUEST}', "
                "or embeddings"
            )

    def check_adapter(self, model: TextModel, adapter: str, name: str) -> None:
        """Raise ApiError if `model` does not have the adapter. `name` is the requested name."""
        if adapter and adapter not in model.adapters():
            raise ApiError(
                f"Unknown LoRA: {adapter}; for model: {name}", param="model", code="model_not_found"
            )

    def listing(self) -> list[dict[str, Any]]:
        """Return the ready models as OpenAI lists them, with aliases and adapters.

        It may wait for another process: do not call it on an event loop.
        """
        aliases: dict[str, list[str]] = {}
        for alias, name in self._aliases.items():
            aliases.setdefault(name, []).append(alias)
        found = []
        for name in dict.fromkeys(each.name for each in self._engine.repository_index(ready=True)):
            try:
                model = self.find(name)
            except ApiError:
                continue
            names = [name, *aliases.get(name, ())]
            if separator := self._options.lora_separator:
                names += [f"{name}{separator}{each}" for each in model.adapters()]
            found += [_model_object(each, model) for each in names]
        return found

    def model_object(self, name: str) -> dict[str, Any]:
        """Return one model as OpenAI shows it. Raises ApiError."""
        real, adapter = self.real_name(name)
        model = self.find(real)
        self.check_adapter(model, adapter, name)
        return _model_object(name, model)

    def _merged(self, name: str, config: ModelConfig, folder: str) -> ModelOptions:
        """Return the settings of a model: server.yaml, then the parameters of config.pbtxt.

        A client may send the latter, so their paths must be in the folder of the version.
        """
        configured = self._options.models.get(name, ModelOptions())
        given = {
            key.removeprefix(_PREFIX): value.string_value
            for key, value in config.parameters.items()
            if key.startswith(_PREFIX)
        }
        unknown = given.keys() - set(ModelOptions.__struct_fields__) | ({"aliases"} & given.keys())
        if unknown:
            self._log.warning(
                "model '%s' has unknown parameters: %s",
                name,
                ", ".join(_PREFIX + each for each in sorted(unknown)),
            )
        known = {key: value for key, value in given.items() if key not in unknown}
        try:
            parsed = _within(folder, decode_options(ModelOptions, known, "openai"))
        except (InvalidServerConfig, InvalidArgument) as error:
            self._log.error("model '%s' has invalid parameters: %s", name, error)
            parsed = ModelOptions()
        default = ModelOptions()
        changes = {
            each: getattr(parsed, each)
            for each in ModelOptions.__struct_fields__
            if getattr(configured, each) == getattr(default, each)
        }
        if configured.default_max_tokens is None and parsed.default_max_tokens is None:
            changes["default_max_tokens"] = self._options.default_max_tokens
        return msgspec.structs.replace(configured, **changes)


def _within(folder: str, options: ModelOptions) -> ModelOptions:
    """Return the options with paths in `folder`. Raises InvalidArgument for a path outside."""
    changes: dict[str, Any] = {}
    if options.tokenizer:
        changes["tokenizer"] = _path_within(folder, options.tokenizer)
    if options.chat_template and not is_template(options.chat_template):
        changes["chat_template"] = _path_within(folder, options.chat_template)
    return msgspec.structs.replace(options, **changes)


def _path_within(folder: str, name: str) -> str:
    if not folder:
        raise InvalidArgument(f"'{name}' needs the folder of the model, which is not in files")
    return str(resolve_model_file(name, Path(folder), Path(folder)))


def _wrong_kind(text: str) -> ApiError:
    return ApiError(text, param="model", code="model_not_found")


def _model_object(name: str, model: TextModel) -> dict[str, Any]:
    return {
        "id": name,
        "created": model.created,
        "object": "model",
        "owned_by": "Triton Inference Server",
    }
