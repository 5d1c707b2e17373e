"""llama.cpp's engine, and the coroutines that answer requests with it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import triton_python_backend_utils as pb_utils
import xllamacpp

from tritonpy_llamacpp.calls import (
    EngineError,
    GrammarCheck,
    Usage,
    completion_body,
    raise_for_error,
    read_chunk,
    read_usage,
)
from tritonpy_llamacpp.settings import InvalidLlamaSettings, LlamaSettings
from tritonpy_text_backend.contract import (
    EMBEDDING_REQUEST,
    RERANK_REQUEST,
    TOKENIZE_REQUEST,
    TextPart,
    TextRequest,
    error_response,
    json_request,
    json_response,
    read_text_request,
    read_tokenize_request,
    returned_outputs,
    text_response,
)
from tritonpy_text_backend.metrics import GenerationMetrics
from tritonpy_text_backend.request_tasks import RequestTasks

_SOCKET_TIMEOUT_S = 60
_FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL
_POOLING = {
    "mean": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN,
    "cls": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_CLS,
    "last": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_LAST,
    "": xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_UNSPECIFIED,
}


class LlamaEngine:
    """The engine of one model. Raises InvalidLlamaSettings if llama.cpp cannot load it.

    All coroutines run on one event loop. llama.cpp's calls block, so each of the `parallel`
    running requests has a thread; further requests wait.
    """

    def __init__(self, settings: LlamaSettings, metrics: Sequence[GenerationMetrics]) -> None:
        self._task = settings.task
        self._adapters = list(settings.adapters)
        self._metrics = metrics
        # llama.cpp offers its tokenizer on a socket only. The name and the key are secret.
        self._socket = f"\0tritonpy-{secrets.token_hex(16)}.sock"
        self._key = secrets.token_hex(16)
        try:
            self._server = xllamacpp.Server(_parameters(settings, self._socket, self._key))
        except RuntimeError as error:
            raise InvalidLlamaSettings(
                f"llama.cpp cannot load {settings.model}: the log has its messages"
            ) from error
        pb_utils.Logger.log_info(
            f"[llamacpp] {settings.parallel} requests at a time on {settings.threads} threads, "
            f"{settings.context} tokens of context"
        )
        self._threads = ThreadPoolExecutor(settings.parallel, "llamacpp")
        # llama.cpp ends a cancelled request at its next token.
        self._requests = RequestTasks(self._answer_one)
        self._waiting = self._running = 0

    async def answer(self, requests: Sequence[Any]) -> None:
        """Answer requests; return when all of them have their final response."""
        await self._requests.run(requests)

    def close(self) -> None:
        """Stop the engine. No request may be in flight."""
        self._threads.shutdown()
        del self._server

    async def _answer_one(self, request: Any, sender: Any) -> None:
        """Send the responses of a request: exactly one of them is final."""
        code, text = None, ""
        try:
            await self._call(request, sender)
        except asyncio.CancelledError:
            code, text = pb_utils.TritonError.CANCELLED, "Request was cancelled"
        except ValueError as error:
            code, text = pb_utils.TritonError.INVALID_ARG, str(error)
        except EngineError as error:
            code = (
                pb_utils.TritonError.INVALID_ARG
                if error.is_client
                else pb_utils.TritonError.INTERNAL
            )
            text = f"llama.cpp: {error}"
        except Exception as error:
            pb_utils.Logger.log_error(f"[llamacpp] Error generating text: {error!r}")
            code, text = pb_utils.TritonError.INTERNAL, f"Error generating text: {error!r}"
        if text:
            sender.send(error_response(text, code), flags=_FINAL)

    async def _call(self, request: Any, sender: Any) -> None:
        returned = returned_outputs(request)
        if (values := json_request(request, TOKENIZE_REQUEST)) is not None:
            answer = await self._in_thread(self._tokenize, values)
        elif (values := json_request(request, EMBEDDING_REQUEST)) is not None:
            answer = await self._in_thread(self._embed, values)
        elif (values := json_request(request, RERANK_REQUEST)) is not None:
            answer = await self._in_thread(self._rerank, values)
        else:
            self._require("generate")
            await self._generate(read_text_request(request), sender)
            return
        value, input_tokens = answer
        sender.send(json_response(value, input_tokens, returned), flags=_FINAL)

    async def _generate(self, call: TextRequest, sender: Any) -> None:
        completion = _Completion(completion_body(call, self._adapters))
        whole: list[TextPart] = []
        self._count(waiting=1)
        future = asyncio.get_running_loop().run_in_executor(
            self._threads, completion.run, self._server
        )
        try:
            while not completion.is_over:
                # A task waits here while its client is slow. Its parts are then joined.
                parts = await completion.next()
                if completion.took_thread():
                    self._count(waiting=-1, running=1)
                if call.stream or completion.is_over:
                    usage = completion.usage
                    response = _response(call, [*whole, *parts], usage)
                    whole.clear()
                    sender.send(response, flags=_FINAL if completion.is_over else 0)
                else:
                    whole += parts
        finally:
            completion.cancel()
            future.cancel()
            if completion.holds_thread:
                self._count(running=-1)
            else:
                self._count(waiting=-1)
        self._record(completion)

    def _embed(self, values: Mapping[str, Any]) -> tuple[Any, int]:
        self._require("embed")
        if values.get("pooling_params", {}).get("dimensions"):
            raise ValueError("llama.cpp does not support dimensions")
        answer = self._server.handle_embeddings({"input": values["input"]})
        raise_for_error(answer)
        return answer["data"][0]["embedding"], answer["usage"]["prompt_tokens"]

    def _rerank(self, values: Mapping[str, Any]) -> tuple[Any, int]:
        self._require("rerank")
        documents = values.get("documents")
        if not isinstance(documents, list) or not documents:
            raise ValueError("rerank_request needs 'query' and 'documents'")
        answer = self._server.handle_rerank({"query": values["query"], "documents": documents})
        raise_for_error(answer)
        scores = [0.0] * len(documents)
        for each in answer["results"]:
            scores[each["index"]] = each["relevance_score"]
        return scores, answer["usage"]["prompt_tokens"]

    def _tokenize(self, values: dict[str, Any]) -> tuple[Any, int]:
        given, adds_special = read_tokenize_request(values)
        if isinstance(given, list):
            return {"text": self._ask("/detokenize", {"tokens": given})["content"]}, 0
        body = {"content": given, "add_special": adds_special, "with_pieces": True}
        tokens = self._ask("/tokenize", body)["tokens"]
        pieces = [each["piece"] for each in tokens]  # bytes as numbers if they are no text
        return {
            "tokens": [each["id"] for each in tokens],
            "pieces": [
                each if isinstance(each, str) else bytes(each).decode("utf-8", "replace")
                for each in pieces
            ],
        }, 0

    def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        """Return the answer of llama.cpp on its socket."""
        connection = _SocketConnection(self._socket)
        try:
            headers = {
                "content-type": "application/json",
                "authorization": f"Bearer {self._key}",
            }
            connection.request("POST", path, json.dumps(body), headers)
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        raise_for_error(answer)
        return answer

    async def _in_thread(self, work: Callable[[Any], tuple[Any, int]], values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, values)

    def _require(self, task: str) -> None:
        """Raise ValueError if the model was not loaded for a task."""
        if task != self._task:
            raise ValueError(
                f"the model was loaded to {self._task}: to {task}, set the parameter 'task' in "
                f"config.pbtxt to '{task}'"
            )

    def _count(self, waiting: int = 0, running: int = 0) -> None:
        self._waiting += waiting
        self._running += running
        for metrics in self._metrics:
            metrics.set("num_requests_waiting", self._waiting)
            metrics.set("num_requests_running", self._running)

    def _record(self, completion: _Completion) -> None:
        """Update the metrics after a complete response."""
        usage, ended = completion.usage, time.monotonic()
        first = completion.first_s or ended
        for metrics in self._metrics:
            metrics.increment("prompt_tokens_total", usage.input_tokens)
            metrics.increment("generation_tokens_total", usage.output_tokens)
            metrics.increment("prefix_cache_queries_total", usage.input_tokens)
            metrics.increment("prefix_cache_hits_total", usage.cached_tokens)
            metrics.count_success(completion.reason)
            metrics.observe("e2e_request_latency_seconds", ended - completion.arrived_s)
            metrics.observe("time_to_first_token_seconds", first - completion.arrived_s)
            metrics.observe("request_queue_time_seconds", completion.began_s - completion.arrived_s)
            metrics.observe("request_prefill_time_seconds", usage.prefill_s)
            metrics.observe("request_decode_time_seconds", usage.decode_s)
            metrics.observe("request_prompt_tokens", usage.input_tokens)
            metrics.observe("request_generation_tokens", usage.output_tokens)
            if usage.output_tokens > 1:
                metrics.observe(
                    "time_per_output_token_seconds", (ended - first) / (usage.output_tokens - 1)
                )


class _Completion:
    """One completion: its thread adds answers, and a coroutine takes them."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body
        self._check = GrammarCheck(body["grammar"]) if "grammar" in body else None
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._chunks: list[Mapping[str, Any]] = []
        self._failure: BaseException | None = None
        self._cancelled = False
        self._counted_tokens = 0
        self.usage = Usage()
        self.reason = "None"
        self.is_over = False
        self.holds_thread = False
        self.arrived_s = self.began_s = time.monotonic()
        self.first_s: float | None = None

    def run(self, server: Any) -> None:
        """Run the completion in the calling thread until it is over or cancelled."""
        if self._cancelled:
            return
        self.began_s = time.monotonic()
        try:
            server.handle_completions(self._body, self._add)
        except Exception as error:
            self._failure = error
        self._loop.call_soon_threadsafe(self._changed.set)

    def cancel(self) -> None:
        """Stop the completion at its next token."""
        self._cancelled = True

    def took_thread(self) -> bool:
        """Return whether the completion has begun since the last call."""
        began, self.holds_thread = not self.holds_thread, True
        return began

    async def next(self) -> list[TextPart]:
        """Return the parts that have arrived, at least one. Raises EngineError."""
        while not self._chunks:
            if self._failure is not None:
                raise self._failure
            self._changed.clear()
            await self._changed.wait()
        chunks, self._chunks = self._chunks, []
        parts = [read_chunk(each) for each in chunks]
        if self.first_s is None:
            self.first_s = time.monotonic()
        self._counted_tokens += len(parts)
        usage = read_usage(chunks[-1])
        for part in parts:
            part.output_tokens = 1
            if self._check is not None:
                self._check.feed(part.text)
        if usage is not None:
            self.is_over = True
            self.usage, self.reason = usage, parts[-1].finish_reason
            # A part may have several tokens, and the last one has none.
            parts[-1].output_tokens += usage.output_tokens - self._counted_tokens
        return parts

    def _add(self, chunk: Mapping[str, Any]) -> bool:
        """Add an answer; return whether llama.cpp is to stop. Called in the thread."""
        if not self._cancelled:
            self._loop.call_soon_threadsafe(self._put, chunk)
        return self._cancelled

    def _put(self, chunk: Mapping[str, Any]) -> None:
        self._chunks.append(chunk)
        self._changed.set()


def _response(call: TextRequest, parts: Sequence[TextPart], usage: Usage) -> Any:
    """Return the response for parts that follow each other."""
    prefix = call.prompt if call.prepends_prompt and isinstance(call.prompt, str) else ""
    logprobs = [token for part in parts for token in part.logprobs or ()]
    joined = TextPart(
        prefix + "".join(part.text for part in parts),
        parts[-1].finish_reason,
        output_tokens=sum(part.output_tokens for part in parts),
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        cumulative_logprob=sum(part.cumulative_logprob for part in parts),
        logprobs=logprobs or None,
    )
    return text_response([joined], call.returned)


class _SocketConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_SOCKET_TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _parameters(settings: LlamaSettings, path: str, key: str) -> Any:
    """Return llama.cpp's parameters."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings.model
    parameters.hostnames = [path]
    parameters.api_keys = [key]
    parameters.ui = parameters.endpoint_slots = False
    parameters.verbosity = 1  # errors and warnings
    parameters.n_ctx = settings.context
    parameters.n_parallel = settings.parallel
    parameters.kv_unified = True
    parameters.n_gpu_layers = settings.gpu_layers
    parameters.cpuparams.n_threads = settings.threads
    parameters.cpuparams_batch.n_threads = settings.threads
    parameters.n_batch = settings.batch
    parameters.cache_ram_mib = settings.cache_mib
    if settings.task != "generate":
        # The whole text of an encoder has to be in one batch.
        parameters.n_batch = parameters.n_ubatch = max(settings.batch, settings.context)
        parameters.embedding = True
        parameters.pooling_type = (
            xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
            if settings.task == "rerank"
            else _POOLING[settings.pooling]
        )
    adapters = []
    for adapter in settings.adapters.values():
        info = xllamacpp.CommonAdapterLoraInfo()
        info.path, info.scale = os.fspath(adapter), 0.0
        adapters.append(info)
    parameters.lora_adapters = adapters
    return parameters
