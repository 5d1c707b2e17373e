"""Load generators: wrk for HTTP, h2load for gRPC (both light), and Triton's perf_analyzer."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.payloads import Payload
from bench.processes import Running

TIMEOUT_S = 60
ATTEMPTS = 3
MIN_RESPONSE_BYTES = 20  # minimum size of a gRPC response with a model name


@dataclass(frozen=True)
class LoadResult:
    """One run of a client: requests/s, latencies (us, 0: unknown), server CPU per request (us)."""

    rate: float
    p50_us: float
    cpu_us: float
    p99_us: float = 0.0


# The last 8 bytes of the body are a counter, so that all requests differ.
DISTINCT_BODIES = """
local head, number = wrk.body:sub(1, -9), os.time() * 1000000
request = function()
  number = number + 1
  local rest, digits = number, {}
  for place = 1, 8 do
    digits[place] = string.char(rest % 256)
    rest = math.floor(rest / 256)
  end
  return wrk.format(nil, nil, nil, head .. table.concat(digits))
end
"""

# Each request has its own id, data, `traceparent` and order of headers, as those of real clients.
_VARIED_LUA = """
local json, rest = wrk.body:sub(2, HEADER_LENGTH), wrk.body:sub(HEADER_LENGTH + 1, -9)
local number = os.time() * 1000000
local orders = {{1, 2, 3, 4}, {2, 1, 4, 3}, {3, 4, 1, 2}, {4, 3, 2, 1}}
request = function()
  number = number + 1
  local left, digits = number, {}
  for place = 1, 8 do
    digits[place] = string.char(left % 256)
    left = math.floor(left / 256)
  end
  local head = string.format('{"id":"%d",', number) .. json
  local body = head .. rest .. table.concat(digits)
  local lines = {
    "Content-Type: application/octet-stream\\r\\n",
    "Inference-Header-Content-Length: " .. #head .. "\\r\\n",
    "Content-Length: " .. #body .. "\\r\\n",
    string.format("traceparent: 00-%032x-%016x-01\\r\\n", number, number),
  }
  local order = orders[number % 4 + 1]
  return "POST " .. wrk.path .. " HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n" .. lines[order[1]]
    .. lines[order[2]] .. lines[order[3]] .. lines[order[4]] .. "\\r\\n" .. body
end
"""


def wrk_varied(server: Running, payload: Payload, in_flight: int, seconds: int) -> LoadResult:
    """Load the HTTP endpoint with requests that differ in id, data, trace and header order."""
    script = _VARIED_LUA.replace("HEADER_LENGTH", str(payload.header_length))
    return wrk(server, payload, in_flight, seconds, script)


_JSON_LUA = """
local pieces, number = {}, os.time() % 1000
for piece in (wrk.body .. "VARIED"):gmatch("(.-)VARIED") do
  pieces[#pieces + 1] = piece
end
request = function()
  number = number % 1000000 + 1
  return wrk.format(nil, nil, nil, table.concat(pieces, number))
end
"""


def wrk_json(
    server: Running, path: str, body: str, varied: str, in_flight: int, seconds: int
) -> LoadResult:
    """Load a path with JSON; in each request another integer replaces the text `varied`."""
    headers = {"Content-Type": "application/json"}
    script = _JSON_LUA.replace("VARIED", varied)
    return _wrk(server, path, body.encode(), headers, in_flight, seconds, script)


def wrk(
    server: Running, payload: Payload, in_flight: int, seconds: int, script: str = ""
) -> LoadResult:
    """Load the HTTP endpoint with `in_flight` connections; `script` makes other requests."""
    headers = {
        "Content-Type": "application/octet-stream",
        "Inference-Header-Content-Length": str(payload.header_length),
    }
    path = f"/v2/models/{payload.model}/infer"
    return _wrk(server, path, payload.body, headers, in_flight, seconds, script)


def _wrk(
    server: Running,
    path: str,
    body: bytes,
    headers: Mapping[str, str],
    in_flight: int,
    seconds: int,
    script: str,
) -> LoadResult:
    with tempfile.TemporaryDirectory() as folder:
        content, file = Path(folder, "body"), Path(folder, "request.lua")
        content.write_bytes(body)
        lines = [f'wrk.headers["{name}"] = "{value}"\n' for name, value in headers.items()]
        file.write_text(
            f'local file = io.open("{content}", "rb")\n'
            'wrk.method = "POST"\nwrk.body = file:read("*a")\n' + "".join(lines) + script
        )
        url = f"http://127.0.0.1:{server.http}{path}"
        command = ["wrk", "-t1", f"-c{in_flight}", f"-d{seconds}s", "--latency"]
        command += ["--timeout", "30s", "-s", str(file), url]
        text, cpu = _run(command, server)
    if "Non-2xx" in text or "Socket errors" in text:
        raise RuntimeError(f"{server.name} responded with errors:\n{text}")
    count = int(_find(r"(\d+) requests in", text))
    if not count and seconds < TIMEOUT_S // 2:
        return _wrk(server, path, body, headers, in_flight, 2 * seconds, script)
    return LoadResult(
        float(_find(r"Requests/sec:\s+([\d.]+)", text)),
        _microseconds(_find(r"50%\s+([\d.]+\w+)", text)),
        cpu / max(count, 1),
        _microseconds(_find(r"99%\s+([\d.]+\w+)", text)),
    )


def h2load(server: Running, payload: Payload, in_flight: int, seconds: int) -> LoadResult:
    """Load the gRPC endpoint with `in_flight` streams on at most 8 connections from one thread."""
    connections = min(in_flight, 8)
    with tempfile.TemporaryDirectory() as folder:
        frame, log = Path(folder, "frame"), Path(folder, "log")
        frame.write_bytes(payload.frame)
        command = [
            "h2load", "-t1", f"-c{connections}", f"-m{in_flight // connections}", f"-D{seconds}",
            "-H", (
                "content-type: "
                "application/grpc"
            ), "-H", "te: trailers", "-d", str(frame), f"--log-file={log}",
            f"http://127.0.0.1:{server.grpc}/inference.GRPCInferenceService/ModelInfer",
        ]  # fmt: skip
        text, cpu = _run(command, server)
        times = sorted([int(line.rpartition("\t")[2]) for line in log.read_text().splitlines()])
    if not times and seconds < TIMEOUT_S // 2:
        return h2load(server, payload, in_flight, 2 * seconds)
    done = int(_find(r"(\d+) succeeded", text))
    errors = int(_find(r"(\d+) failed", text)) + int(_find(r"(\d+) errored", text))
    # h2load counts a call that fails in its trailers as a success; its response has no data.
    if done == 0 or errors or int(_find(r"\((\d+)\) data", text)) < done * MIN_RESPONSE_BYTES:
        raise RuntimeError(f"{server.name} responded with errors:\n{text}")
    rate = float(_find(r"finished in [\d.]+\w+, ([\d.]+) req/s", text))
    return LoadResult(rate, times[len(times) // 2], cpu / done, times[len(times) * 99 // 100])


def grpc_varied(server: Running, payload: Payload, in_flight: int, seconds: int) -> LoadResult:
    """Load the gRPC endpoint with requests that differ in id and data (`bench.varied_grpc`)."""
    with tempfile.TemporaryDirectory() as folder:
        message = Path(folder, "message")
        message.write_bytes(payload.frame[5:])  # without the size
        command = [sys.executable, "-m", "bench.varied_grpc", str(server.grpc), str(message)]
        text, cpu = _run([*command, str(in_flight), str(seconds)], server)
    found = json.loads(text)
    if found["failures"] or not found["count"]:
        raise RuntimeError(f"{server.name} responded with errors: {text}")
    return LoadResult(
        found["count"] / found["seconds"], found["p50_us"], cpu / found["count"], found["p99_us"]
    )


def perf_analyzer(
    binary: Path, server: Running, payload: Payload, in_flight: int, protocol: str
) -> LoadResult:
    """Load one protocol with the real perf_analyzer: binary tensors, one window of 3 s."""
    return perf_analyzer_with(binary, server, payload.model, in_flight, protocol, 3)


def perf_analyzer_with(
    binary: Path,
    server: Running,
    model: str,
    in_flight: int,
    protocol: str,
    seconds: int,
    more: Sequence[str] = (),
) -> LoadResult:
    """Run perf_analyzer with a model, the seconds of a window, and further flags."""
    port = server.http if protocol == "http" else server.grpc
    command = [
        str(binary), "-m", model, "-i", protocol, "-u", f"127.0.0.1:{port}",
        f"--concurrency-range={in_flight}",
        f"--measurement-interval={seconds * 1000}", "--max-trials=3", "--stability-percentage=999",
        *more,
    ]  # fmt: skip
    text, cpu = _run(command, server)
    # perf_analyzer runs several windows and reports one.
    rate = float(_find(r"Throughput: ([\d.]+) infer/sec", text))
    count = int(_find(r"Request count: (\d+)", text))
    p50, p99 = [float(_find(rf"{part} latency: (\d+) usec", text)) for part in ("p50", "p99")]
    return LoadResult(rate, p50, cpu / max(count, 1), p99)


def _run(command: list[str], server: Running) -> tuple[str, float]:
    for _ in range(ATTEMPTS):
        before = server.cpu_seconds()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
            )
        except (
            subprocess.TimeoutExpired
        ):  # perf_analyzer hangs sometimes, although the server responds to other clients
            print(f"{command[0]} hung on {server.name}: retrying", file=sys.stderr, flush=True)
            continue
        if done.returncode != 0:
            raise RuntimeError(
                f"{command[0]} failed on {server.name}:\n{done.stdout}\n{done.stderr}"
            )
        return done.stdout, (server.cpu_seconds() - before) * 1e6
    raise RuntimeError(f"{command[0]} hung on {server.name} {ATTEMPTS} times")


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise RuntimeError(f"no '{pattern}' in:\n{text}")
    return match[1]


def _microseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]
