"""Time from server start to the first responses of two Python models.

Run with `python -m bench.cold_start --triton FILE`.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from bench import models, payloads, processes
from bench.clients import LoadResult
from bench.comparison_rows import TRANSPORTS
from bench.processes import Running
from bench.program import OWN_FLAGS, parser_of, run
from bench.rows import P50, Case

GOAL, AIM = 1.2, 1.0
MODELS = ("single", "batched")
PAUSE_S = 0.002
TIMEOUT_S = 60
Start = Callable[[], AbstractContextManager[Running]]


def main() -> int:
    """Start both servers alternately; return 1 if tritonpy is too slow."""
    parser = parser_of(__doc__, needs=["--triton"])
    parser.add_argument("--transport", choices=TRANSPORTS, default="uvicorn")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        models.write_python_backend(repository)
        explicit = ["--model-control-mode=explicit", *(f"--load-model={name}" for name in MODELS)]
        ours = [*explicit, *OWN_FLAGS.get(arguments.transport, ())]
        starts: dict[str, Start] = {
            "tritonpy": partial(processes.tritonpy, repository, *ours, wait=_wait_for_responses),
            "Triton": partial(
                processes.triton, arguments.triton, repository, *explicit, wait=_wait_for_responses
            ),
        }
        name = (
            f"cold start on {arguments.transport}, {len(MODELS)} Python models, "
            "to the first response of each"
        )
        case = Case(
            name, "Triton", lambda server, _seconds: _start(starts[server.name]), GOAL, P50, aim=AIM
        )
        # No server runs between starts, so these have a name only.
        return run(arguments, [case], {server: Running(server, 0) for server in starts})


def _start(start: Start) -> LoadResult:
    begin = time.perf_counter()
    with start() as server:
        seconds = time.perf_counter() - begin
        return LoadResult(1 / seconds, seconds * 1e6, server.cpu_seconds() * 1e6)


def _wait_for_responses(http: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    for name in MODELS:
        payload = payloads.add_sub(name)
        headers = {
            "Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(payload.header_length),
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{http}/v2/models/{name}/infer", payload.body, headers
        )
        while not _succeeds(request):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no response of '{name}' in {TIMEOUT_S} s")
            time.sleep(PAUSE_S)


def _succeeds(request: urllib.request.Request) -> bool:
    with (
        contextlib.suppress(urllib.error.URLError, OSError),
        urllib.request.urlopen(request, timeout=5) as response,
    ):
        return response.status == 200
    return False


if __name__ == "__main__":
    sys.exit(main())
