"""The prompts of a benchmark: synthetic ones of given lengths, or those of a file."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from tritonpy_bench.generation.options import GenerationOptions
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.wire.address import Address

# Common words, most of which are one token in most vocabularies.
_WORDS = (Path(__file__).parent / "words.txt").read_text("utf-8").split()


class Request(msgspec.Struct):
    """One request: the messages before its answer, or a text, and the length of the answer.

    `at_ms` is its time in a schedule.
    """

    text: str
    output_tokens: int
    messages: list[dict[str, Any]] | None = None
    at_ms: float = 0.0


Tokenizer = Callable[[str], int]
"""Returns the number of tokens of a text."""


def make_requests(
    options: GenerationOptions, count: int, tokens_of: Tokenizer | None
) -> list[Request]:
    """Return `count` requests, those of the file again if it has fewer. Raises BadUsage."""
    if options.input_file is not None:
        found = _read_file(options.input_file, options)
        if options.fixed_schedule:
            return found
        return [found[number % len(found)] for number in range(count)]
    rng = random.Random(options.seed)  # noqa: S311 - not for security
    shared = _text(rng, round(options.input_tokens * options.prefix_share), tokens_of)
    requests = []
    for _ in range(count):
        length = _length(rng, options.input_tokens, options.input_tokens_stddev)
        own = _text(rng, max(1, length - (tokens_of or _words_of)(shared)), tokens_of)
        output = _length(rng, options.output_tokens, options.output_tokens_stddev)
        requests.append(Request(f"{shared} {own}".strip(), output))
    return requests


def open_tokenizer(options: GenerationOptions, address: Address) -> Tokenizer | None:
    """Return the tokenizer that the options name. Raises BadUsage."""
    if not options.tokenizer:
        return None
    if options.tokenizer == "server":
        return _ServerTokenizer(options, address).count
    path = Path(options.tokenizer)
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        from tokenizers import Tokenizer as FileTokenizer
    except ImportError:
        raise BadUsage("--tokenizer FOLDER needs: pip install tokenizers") from None
    try:
        tokenizer = FileTokenizer.from_file(str(path))
    except Exception as error:  # the package raises no other type
        raise BadUsage(f"--tokenizer {path}: {error}") from error
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


class _ServerTokenizer:
    """Counts tokens with `/tokenize` of the server."""

    def __init__(self, options: GenerationOptions, address: Address) -> None:
        self._model = options.model
        self._address = address
        self._headers = {"content-type": "application/json", **dict(options.headers)}

    def count(self, text: str) -> int:
        body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        connection = http.client.HTTPConnection(self._address.host, self._address.port, timeout=60)
        with closing(connection):
            try:
                connection.request("POST", "/tokenize", json.dumps(body), self._headers)
                answer = json.loads(connection.getresponse().read())
                return int(answer["count"])
            except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
                raise BadUsage(
                    f"--tokenizer server: /tokenize does not answer: {error!r}"
                ) from error


def _words_of(text: str) -> int:
    return len(text.split())


def _length(rng: random.Random, mean: float, stddev: float) -> int:
    return max(1, round(rng.gauss(mean, stddev) if stddev else mean))


def _text(rng: random.Random, tokens: int, tokens_of: Tokenizer | None) -> str:
    """Return random words that have this number of tokens, as exactly as the tokenizer allows."""
    words = rng.choices(_WORDS, k=tokens)
    if tokens_of is None or not words:
        return " ".join(words)
    while (missing := tokens - tokens_of(" ".join(words))) > 0:
        words += rng.choices(_WORDS, k=missing)
    while len(words) > 1 and tokens_of(" ".join(words)) > tokens:
        words.pop()
    for word in rng.sample(_WORDS, len(_WORDS)):  # those that still fit
        if tokens_of(" ".join(words)) == tokens:
            break
        if tokens_of(" ".join([*words, word])) <= tokens:
            words.append(word)
    return " ".join(words)


def _read_file(path: Path, options: GenerationOptions) -> list[Request]:
    requests = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"--input-file {path}: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            requests.append(_read_line(line, f"--input-file {path}, line {number}", options))
    if not requests:
        raise BadUsage(f"--input-file {path} has no request")
    return requests


def _read_line(line: str, where: str, options: GenerationOptions) -> Request:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BadUsage(f"{where} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadUsage(f"{where} is no object")
    text, messages = str(value.get("text", value.get("prompt", ""))), value.get("messages")
    if not text and not _is_messages(messages):
        raise BadUsage(f'{where} has neither "text" nor "messages"')
    if options.fixed_schedule and not isinstance(value.get("timestamp"), int | float):
        raise BadUsage(f'{where} has no "timestamp" in ms, which --fixed-schedule needs')
    output = value.get("output_length", options.output_tokens)
    return Request(text, int(output), messages, float(value.get("timestamp", 0)))


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def request_body(
    options: GenerationOptions, request: Request, earlier: Sequence[dict[str, Any]] = ()
) -> bytes:
    """Return the body of a request; `earlier` are the messages of its session."""
    extra = dict(options.extra_inputs)
    messages = request.messages or [{"role": "user", "content": request.text}]
    text = request.text or "\n".join(str(each.get("content", "")) for each in messages)
    kind = options.endpoint_type
    if kind == "embeddings":
        return msgspec.json.encode({"model": options.model, "input": text, **extra})
    limits: dict[str, Any] = {"max_tokens": request.output_tokens, "ignore_eos": True}
    if kind in {"generate", "generate_stream"}:
        stream = {"stream": True} if options.streams else {}
        return msgspec.json.encode({"text_input": text, **stream, **limits, **extra})
    body: dict[str, Any] = {"model": options.model, "stream": options.streams, **limits}
    if options.streams:
        body["stream_options"] = {"include_usage": True}
    if kind == "chat":
        body["messages"] = [*earlier, *messages]
    else:
        body["prompt"] = text
    return msgspec.json.encode(body | extra)
