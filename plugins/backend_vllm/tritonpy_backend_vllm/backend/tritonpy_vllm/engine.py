"""vLLM's engine, and the coroutines that answer requests with it."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import triton_python_backend_utils as pb_utils

from tritonpy_text_backend.contract import (
    EMBEDDING_REQUEST,
    TOKENIZE_REQUEST,
    error_response,
    json_request,
    json_response,
    read_tokenize_request,
    returned_outputs,
)
from tritonpy_text_backend.request_tasks import RequestTasks
from tritonpy_vllm.calls import AdapterFault, GenerateCall, read_embedding, read_generate
from tritonpy_vllm.responses import output_response

_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class VllmEngine:
    """The engine of one model.

    `arguments` are those of vLLM's AsyncEngineArgs. `loggers` make vLLM's statistics loggers.
    Raises what vLLM raises if it cannot start. All coroutines run on one event loop.
    """

    def __init__(
        self,
        name: str,
        arguments: Mapping[str, Any],
        adapters: Mapping[str, str] | None,
        loggers: Sequence[Callable[..., Any]],
    ) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._name = name
        self._adapters = adapters
        self._adapter_ids = {each: number for number, each in enumerate(adapters or (), start=1)}
        self._engine = AsyncLLM.from_engine_args(
            AsyncEngineArgs(**arguments), stat_loggers=list(loggers) or None
        )
        # An invalid parameter, or a prompt that is too long.
        self._client_errors = _client_errors()
        self._tasks: frozenset[str] = frozenset()  # what the engine supports, once it was asked
        # vLLM aborts the request of a cancelled task within one step.
        self._requests = RequestTasks(self._answer_one)

    async def answer(self, requests: Sequence[Any]) -> None:
        """Answer requests; return when all of them have their final response."""
        await self._requests.run(requests)

    async def check_health(self) -> None:
        """Raise if the engine is dead."""
        await self._engine.check_health()

    def close(self) -> None:
        """Stop the engine. No request may be in flight."""
        self._engine.shutdown()
        # Its finalizer would fail at the end of the interpreter.
        del self._engine

    async def _answer_one(self, request: Any, sender: Any) -> None:
        """Send the responses of a request: exactly one of them is final."""
        try:
            if (embedding := json_request(request, EMBEDDING_REQUEST)) is not None:
                await self._embed(embedding, returned_outputs(request), sender)
            elif (tokens := json_request(request, TOKENIZE_REQUEST)) is not None:
                self._tokenize(tokens, sender)
            else:
                await self._generate(read_generate(request, self._adapters), sender)
        except asyncio.CancelledError:
            code = pb_utils.TritonError.CANCELLED
            sender.send(error_response("Request was cancelled", code), flags=_FINAL)
        except AdapterFault as error:
            sender.send(error_response(str(error)), flags=_FINAL)
        except self._client_errors as error:
            code = pb_utils.TritonError.INVALID_ARG
            sender.send(error_response(f"Error generating stream: {error}", code), flags=_FINAL)
        except Exception as error:
            pb_utils.Logger.log_error(f"[vllm] Error generating stream: {error!r}")
            sender.send(error_response(f"Error generating stream: {error}"), flags=_FINAL)

    async def _generate(self, call: GenerateCall, sender: Any) -> None:
        await self._require("generate")
        outputs = self._engine.generate(
            call.prompt, call.sampling, uuid.uuid4().hex, lora_request=self._adapter(call.adapter)
        )
        async for output in outputs:
            # A task waits here while its client is slow. vLLM then joins the parts of the text.
            flags = _FINAL if output.finished else 0
            if call.stream or output.finished:
                sender.send(output_response(output, call), flags=flags)
            if output.finished:
                return  # a cancellation must not follow the final response

    async def _embed(
        self, values: Mapping[str, Any], returned: frozenset[str], sender: Any
    ) -> None:
        await self._require("embed")
        prompt, pooling = read_embedding(values)
        async for output in self._engine.encode(prompt, pooling, uuid.uuid4().hex):
            if output.finished:
                vector = output.outputs.data.tolist()
                response = json_response(vector, len(output.prompt_token_ids), returned)
                sender.send(response, flags=_FINAL)
                return

    def _tokenize(self, values: dict[str, Any], sender: Any) -> None:
        """Answer with the token IDs of a text, or with the text of token IDs."""
        tokenizer = self._engine.get_tokenizer()
        given, adds_special = read_tokenize_request(values)
        if isinstance(given, list):
            answer = {"text": tokenizer.decode(given)}
        else:
            tokens = tokenizer.encode(given, add_special_tokens=adds_special)
            answer = {"tokens": tokens, "pieces": tokenizer.convert_ids_to_tokens(tokens)}
        sender.send(json_response(answer, 0, frozenset()), flags=_FINAL)

    async def _require(self, task: str) -> None:
        """Raise ValueError if the model does not support a task."""
        if not self._tasks:
            self._tasks = frozenset(await self._engine.get_supported_tasks())
        if task not in self._tasks:
            raise ValueError(f"Model {self._name} does not support '{task}' request")

    def _adapter(self, name: str | None) -> Any:
        if name is None or self._adapters is None:
            return None
        from vllm.lora.request import LoRARequest

        return LoRARequest(name, self._adapter_ids[name], self._adapters[name])


def _client_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions for faulty requests; older versions of vLLM have only ValueError."""
    try:
        from vllm.exceptions import VLLMClientError
    except ImportError:
        return (ValueError,)
    return (ValueError, VLLMClientError)
