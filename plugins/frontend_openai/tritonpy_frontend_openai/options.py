"""The options of the OpenAI frontend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta

from tritonpy import Options
from tritonpy.auth import Restriction, check_restrictions
from tritonpy.config import ByteSize
from tritonpy.frontend import HttpConnectionOptions, HttpTlsOptions

Compatibility = Literal["openai", "triton"]
ToolParser = Literal["", "hermes", "llama3_json", "mistral", "pythonic"]
ReasoningParser = Literal["", "think", "deepseek_r1"]


class ModelOptions(Options, frozen=True):
    """The settings of one model, under `models:`.

    Each of them except `aliases` may also be a parameter of config.pbtxt, named `openai.` and the
    setting. The setting in server.yaml has precedence.
    """

    aliases: Annotated[
        tuple[str, ...], Meta(description="Further names that clients may use for the model")
    ] = ()
    tokenizer: Annotated[
        str,
        Meta(
            description=(
                "Folder with tokenizer_config.json and chat_template.jinja "
                "(default: the folder of the model's version)"
            )
        ),
    ] = ""
    chat_template: Annotated[
        str, Meta(description="A Jinja template, or the path of a file with one")
    ] = ""
    tool_parser: Annotated[
        ToolParser, Meta(description="Format of the tool calls that the model writes")
    ] = ""
    reasoning_parser: Annotated[
        ReasoningParser, Meta(description="Format of the reasoning that the model writes")
    ] = ""
    structured_output: Annotated[
        bool | None,
        Meta(description="The model obeys JSON schemas (default: if its backend is known to)"),
    ] = None
    default_max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="max_tokens of a request that has none (default: no limit in chats)"),
    ] = None


class OpenAiOptions(HttpConnectionOptions, frozen=True):
    """The options under `frontends: openai:` of server.yaml."""

    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 picks a free one")] = 9000
    host: Annotated[
        str | None, Meta(description="Address to listen on instead of the server's")
    ] = None
    mount: Annotated[
        bool,
        Meta(description="Serve on the port of the HTTP frontend instead of a port of its own"),
    ] = False
    reuse_port: Annotated[
        bool, Meta(description="Let several servers listen on the port (SO_REUSEPORT)")
    ] = False
    tls: Annotated[
        HttpTlsOptions, Meta(description="Certificate and key that encrypt the port")
    ] = HttpTlsOptions()
    compat: Annotated[
        Compatibility,
        Meta(
            description=("triton: error texts, bodies and strictness of Triton's OpenAI frontend")
        ),
    ] = "openai"
    models: Annotated[
        Mapping[str, ModelOptions], Meta(description="Settings of models, by name")
    ] = {}
    default_max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="max_tokens of a request that has none, for all models"),
    ] = None
    lora_separator: Annotated[
        str,
        Meta(description="Text between the model and the LoRA adapter in a model name, or empty"),
    ] = ""
    model_control: Annotated[
        bool, Meta(description="Offer /v1/models/NAME/load and /v1/models/NAME/unload")
    ] = True
    max_body_bytes: Annotated[
        ByteSize, Meta(gt=0, description="Largest body of a request in bytes")
    ] = 64 * 1024 * 1024
    max_choices: Annotated[
        int, Meta(ge=1, description="Largest number of choices of one request: prompts times n")
    ] = 128
    max_stored_responses: Annotated[
        int, Meta(ge=1, description="Responses of the Responses API that the server keeps")
    ] = 1000
    max_stored_bytes: Annotated[
        ByteSize, Meta(gt=0, description="Bytes of the responses that the server keeps")
    ] = 64 * 1024 * 1024
    max_tool_call_bytes: Annotated[
        ByteSize,
        Meta(gt=0, description="Largest tool call of a response; a longer one ends the response"),
    ] = 1024 * 1024
    max_waiting_answers: Annotated[
        int, Meta(ge=1, description="Responses of one choice that may wait for a slow client")
    ] = 64
    max_waiting_bytes: Annotated[
        ByteSize, Meta(gt=0, description="Bytes of such responses that may wait")
    ] = 256 * 1024
    heartbeat_s: Annotated[
        float,
        Meta(
            ge=0, description="Seconds without a token after which a stream gets a comment; 0: none"
        ),
    ] = 15
    drain_idle_s: Annotated[
        float,
        Meta(
            ge=0,
            description=(
                "Seconds that a stopping server keeps a connection open for its client's next "
                "request"
            ),
        ),
    ] = 5
    restricted_apis: Annotated[
        tuple[Restriction, ...],
        Meta(description="Groups of calls that require a header with a secret value"),
    ] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination of options."""
        check_restrictions(self.restricted_apis, "api")
        used: dict[str, str] = {}
        for name, model in self.models.items():
            for alias in model.aliases:
                if alias in used:
                    raise ValueError(
                        f"models '{used[alias]}' and '{name}' have the same alias '{alias}'"
                    )
                used[alias] = name
