"""Path of one warm request through the source: `python -m bench.profile.switches [--calls]`.

The server runs in this process. After a warm-up, the calls of one request are recorded on the event
loop's thread. The table has one line per run of calls in one file; their number is the number
of file switches. `--calls` prints every call. Only files of this project count.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http

from bench import models
from tritonpy import running_server
from tritonpy.config import decode_server_config

WARM_UP = 200


class PathRecorder:
    """Records the calls of every thread that starts from now on, while `active`."""

    def __init__(self) -> None:
        self._calls: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self.active = False
        threading.setprofile(self._record)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """File and function of each call on the event loop's thread, which runs the frontend.

        On a busy machine the model may run on its own thread, with more calls than the loop's.
        """
        return max(self._calls.values(), key=_count_frontend)

    def _record(self, frame: FrameType, event: str, _argument: Any) -> None:
        if self.active and event == "call":
            path = frame.f_code.co_filename
            if "tritonpy" in path:
                call = _short(path), frame.f_code.co_qualname
                self._calls[threading.get_ident()].append(call)

    def runs(self) -> list[tuple[str, list[str]]]:
        """Return the calls, joined while they stay in one file."""
        found: list[tuple[str, list[str]]] = []
        for path, name in self.calls:
            if not found or found[-1][0] != path:
                found.append((path, []))
            found[-1][1].append(name)
        return found


def _count_frontend(calls: list[tuple[str, str]]) -> int:
    return sum(path.startswith("tritonpy_frontend_") for path, _ in calls)


def _short(path: str) -> str:
    parts = Path(path).parts
    start = max(place for place, part in enumerate(parts) if part.startswith("tritonpy"))
    return "/".join(parts[start:])


def record(protocol: str) -> PathRecorder:
    """Return the recorded calls of one warm request to an ONNX model."""
    recorder = PathRecorder()
    with tempfile.TemporaryDirectory() as folder:
        models.write_pair(Path(folder), "single")
        frontends = {"http": {"port": 0}, "grpc": {"port": 0}, "metrics": False}
        config = decode_server_config({"repositories": [{"url": folder}], "frontends": frontends})
        with running_server(config) as server:
            send = _client(protocol, server.address(protocol))
            for number in range(WARM_UP):
                send(number)
            recorder.active = True
            send(WARM_UP)
            recorder.active = False
    threading.setprofile(None)  # type: ignore[arg-type]
    return recorder


def _client(protocol: str, address: str) -> Callable[[int], object]:
    module = tritonclient.http if protocol == "http" else tritonclient.grpc
    client = module.InferenceServerClient(address)
    inputs = []
    for name in ("INPUT0", "INPUT1"):
        tensor = module.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
        inputs.append(tensor)
    return lambda number: client.infer("single", inputs, request_id=str(10_000 + number))


def main() -> None:
    """Print the path and the number of file switches."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--protocol", choices=("http", "grpc"), default="http")
    parser.add_argument("--calls", action="store_true", help="print every call")
    arguments = parser.parse_args()
    recorder = record(arguments.protocol)
    runs = recorder.runs()
    for path, names in runs:
        print(f"{path:60} {' '.join(names) if arguments.calls else len(names)}")
    files = {path for path, _ in runs}
    print(f"{len(recorder.calls)} calls in {len(files)} files, {len(runs)} file switches")


if __name__ == "__main__":
    main()
