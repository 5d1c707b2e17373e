"""How the work of a request divides: `python -m bench.profile.division [--python PATH]`.

The server runs under callgrind (Debian's valgrind), which counts instructions while wrk or h2load
send requests. Every function belongs to a group by its library: the evaluation of bytecode, the
rest of the interpreter, compiled modules, ONNX Runtime, and other libraries. Instructions of the
kernel are not counted. So the share of system calls is that of the processor time of a second
server, without callgrind. `--python` is the interpreter of an environment with tritonpy: compare an
interpreted with a compiled one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from bench import clients, models, payloads, processes
from bench.processes import Running

LOADS = {"http": clients.wrk_varied, "grpc": clients.h2load}
IN_FLIGHT = 32
START_S = 600  # the imports alone take a minute under callgrind
_LINE = re.compile(r"^\s*([\d,]+) \([^)]*\)\s+\S*?:(\S+).*?(?:\[([^\]]*)\])?$")
LIBRARIES = {
    "__mypyc": "compiled modules",
    "onnxruntime": "ONNX Runtime",
    "numpy": "numpy",
    "uvloop": "uvloop",
    "msgspec": "msgspec",
    "google": "protobuf",
    "httptools": "httptools",
    "libc": "the C library",
    "vgpreload": "the C library",
}
BYTECODE, INTERPRETER, OTHER = "bytecode", "the rest of the interpreter", "other libraries"


def group_of(function: str, library: str) -> str:
    """Return the group of a function of a shared library or of the interpreter's program."""
    name = Path(library).name
    for part, group in LIBRARIES.items():
        if part in name or (part in library and name.endswith(".so")):
            return group
    if "python" in name:
        return BYTECODE if function.startswith("_PyEval_EvalFrame") else INTERPRETER
    return OTHER


def divide(lines: Iterable[str]) -> Counter[str]:
    """Return the instructions of each group from the output of callgrind_annotate."""
    found: Counter[str] = Counter()
    for line in lines:
        match = _LINE.match(line)
        if match and match[3]:
            found[group_of(match[2], match[3])] += int(match[1].replace(",", ""))
    return found


@contextlib.contextmanager
def under_callgrind(repository: Path, python: str, output: Path) -> Iterator[Running]:
    """Run a server whose instructions are counted on demand; yield when it is ready."""
    http, grpc = processes.free_port(), processes.free_port()
    command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
    command += [f"--callgrind-out-file={output}", python, "-m", "tritonpy", "serve"]
    command += [f"--model-repository={repository}", f"--http-port={http}", f"--grpc-port={grpc}"]
    process = subprocess.Popen(
        [*command, "--allow-metrics=false"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        processes.wait_http(http, START_S)
        yield Running("tritonpy", process.pid, http, grpc)
        process.terminate()
        process.wait(START_S)
    finally:
        process.kill()
        process.wait()


def executed(server: Running) -> int:
    """Return the number of inferences so far."""
    url = f"http://127.0.0.1:{server.http}/v2/models/single/stats"
    with urllib.request.urlopen(url, timeout=60) as reply:
        return int(json.load(reply)["model_stats"][0]["inference_count"])


def instructions(protocol: str, repository: Path, python: str, seconds: int) -> Counter[str]:
    """Return the instructions per request of each group."""
    payload = payloads.add_sub("single")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "callgrind.out")
        with under_callgrind(repository, python, output) as server:
            LOADS[protocol](server, payload, IN_FLIGHT, seconds)
            control = ["callgrind_control", "--instr=on", str(server.pid)]
            subprocess.run(control, check=True, stdout=subprocess.DEVNULL)
            before = executed(server)
            LOADS[protocol](server, payload, IN_FLIGHT, seconds)
            count = executed(server) - before
            control[1] = "--instr=off"
            subprocess.run(control, check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run(
            ["callgrind_annotate", "--threshold=100", str(output)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    return Counter(
        {group: round(number / count) for group, number in divide(text.splitlines()).items()}
    )


def system_share(protocol: str, repository: Path, python: str, seconds: int) -> float:
    """Return the share of the kernel in the server's processor time."""
    payload = payloads.add_sub("single")
    with processes.tritonpy(repository, python=python) as server:
        process = psutil.Process(server.pid)
        LOADS[protocol](server, payload, IN_FLIGHT, 1)
        before = process.cpu_times()
        LOADS[protocol](server, payload, IN_FLIGHT, seconds)
        after = process.cpu_times()
    system, user = after.system - before.system, after.user - before.user
    return system / (system + user)


def main() -> None:
    """Print the division for each protocol."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--protocol", choices=LOADS, action="append")
    parser.add_argument("--python", default=sys.executable, help="default: this interpreter")
    parser.add_argument("--seconds", type=int, default=5, help="length of one load")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models.write_onnx_pair(Path(folder))
        for protocol in arguments.protocol or LOADS:
            share = system_share(protocol, Path(folder), arguments.python, arguments.seconds)
            found = instructions(protocol, Path(folder), arguments.python, arguments.seconds)
            total = sum(found.values())
            print(f"{protocol}: {total} instructions per request, {share:.0%} of the time in calls")
            print("of the system; the rest divides by instructions into")
            for group, number in found.most_common():
                print(f"{group:28} {number:8} {number / total:6.1%}")


if __name__ == "__main__":
    main()
