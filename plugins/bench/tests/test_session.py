"""Complete benchmarks against servers with unusual behavior."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from itertools import groupby

import psutil
import pytest

from tritonpy.cli import main
from tritonpy_testing.toy_http import http_response, kserve, toy_http

RUN = [sys.executable, "-m", "tritonpy", "bench"]


def measured(tmp_path, *arguments, status=0):
    path = tmp_path / "result.json"
    assert main(["bench", *arguments, "--json", str(path)]) == status
    return json.loads(path.read_text())


def test_a_server_of_the_bare_protocol_is_loaded_with_json(tmp_path, capsys):
    bodies = []

    async def infer(body):
        bodies.append(json.loads(body))
        return http_response({"outputs": []})

    with toy_http(kserve(infer)) as toy:
        made = measured(
            tmp_path,
            "m",
            "-u",
            f"127.0.0.1:{toy.port}",
            "--request-count",
            "20",
            "-H",
            "X-Key: secret",
        )
    assert len(bodies) == 20
    assert bodies[0]["inputs"][0]["shape"] == [1, 3]
    assert len(bodies[0]["inputs"][0]["data"]) == 3
    assert all("X-Key: secret" in head for head in toy.heads)
    printed = capsys.readouterr().out
    assert "the server has no statistics" in printed
    assert "tensors are sent as JSON" in printed
    assert made["levels"][0]["server"] == []


def test_an_open_loop_continues_without_responses(tmp_path):
    """The server responds only after twenty requests are in flight; a closed loop would never finish."""
    held = []

    async def infer(body):
        held.append(asyncio.Event())
        if len(held) >= 20:
            for event in held:
                event.set()
        await held[-1].wait()
        return http_response()

    with toy_http(kserve(infer)) as toy:
        rate = (
            "--request-rate-range",
            "400",
            "--request-distribution",
            "poisson",
            "--client-processes",
            "2",
        )
        made = measured(
            tmp_path, "m", "-u", f"127.0.0.1:{toy.port}", "--request-count", "60", *rate
        )
    [level] = made["levels"]
    assert (level["requests"], level["failed"]) == (60, 0)
    assert level["latency"]["count"] == level["late"]["count"] == 60
    assert level["latency"]["mean"] >= level["service"]["mean"]


CLOSED, OPEN = (
    ("--concurrency-range", "3"),
    ("--request-rate-range", "500", "--num-of-sequences", "3"),
)


@pytest.mark.parametrize(
    ("mode", "load"),
    [(("-i", "http"), OPEN), (("-i", "grpc"), CLOSED), (("-i", "grpc", "--streaming"), OPEN)],
    ids=["http, open", "grpc, closed", "streams, open"],
)
def test_sequences_are_whole_and_in_order(server, models, tmp_path, mode, load):
    models.received.clear()
    url = getattr(server, mode[1])
    lengths = (
        "--sequence-length",
        "4",
        "--sequence-length-variation",
        "50",
        "--client-processes",
        "2",
    )
    made = measured(
        tmp_path, "sequence", "-u", url, "--request-count", "60", *mode, *load, *lengths
    )
    assert (made["levels"][0]["requests"], made["levels"][0]["failed"]) == (60, 0)
    sequences = {}
    for name, start, end, _ in models.received:
        sequences.setdefault(name, []).append((start, end))
    assert len(models.received) >= 60
    for parts in sequences.values():
        assert 1 <= len(parts) <= 6
        assert [start for start, _ in parts] == [True] + [False] * (len(parts) - 1)
        assert [end for _, end in parts] == [False] * (len(parts) - 1) + [True]


def test_a_sequence_takes_its_data_from_one_stream(server, models, tmp_path):
    models.received.clear()
    data = tmp_path / "data.json"
    data.write_text(
        '{"data": [[{"IN": [1]}, {"IN": [2]}, {"IN": [3]}], [{"IN": [7]}, {"IN": [8]}]]}'
    )
    measured(
        tmp_path, "sequence", "-u", server.http, "--request-count", "10", "--input-data", str(data)
    )
    received = [
        [entry[3] for entry in group]
        for _, group in groupby(models.received, key=lambda entry: entry[0])
    ]
    assert received == [[1, 2, 3], [7, 8], [1, 2, 3], [7, 8]]


def started(*arguments):
    return subprocess.Popen(
        [*RUN, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def workers_of(process):
    return [
        child
        for child in psutil.Process(process.pid).children()
        if "tritonpy_load_generator.client.worker" in child.cmdline()
    ]


def test_ctrl_c_keeps_the_results_so_far(tmp_path):
    request = []

    async def infer(body):
        request.append(body)
        if len(request) == 50:  # by now something was measured
            os.kill(process.pid, signal.SIGINT)
        return http_response()

    with toy_http(kserve(infer)) as toy:
        reports = ("--json", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.html"))
        process = started(
            "m",
            "-u",
            f"127.0.0.1:{toy.port}",
            "-p",
            "60000",
            "--concurrency-range",
            "2:9:1",
            *reports,
        )
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0, printed
    assert "concurrency 2: interrupted" in printed
    [level] = json.loads((tmp_path / "r.json").read_text())["levels"]
    assert level["interrupted"]
    assert level["requests"] >= 40
    assert "interrupted" in (tmp_path / "r.html").read_text()


def test_ctrl_c_ends_a_load_without_responses_and_its_processes():
    hanging = []

    async def infer(body):
        hanging.append(body)
        if len(hanging) == 1:
            workers.extend(workers_of(process))
            os.kill(process.pid, signal.SIGINT)
        await asyncio.Event().wait()

    workers = []
    with toy_http(kserve(infer)) as toy:
        process = started(
            "m",
            "-u",
            f"127.0.0.1:{toy.port}",
            "-p",
            "60000",
            "--client-processes",
            "2",
            "--concurrency-range",
            "2",
        )
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1, printed
    assert "no request finished" in printed
    assert len(workers) == 2
    assert not any(worker.is_running() for worker in workers)


def test_a_dead_client_process_is_reported_and_earlier_levels_are_kept(tmp_path):
    request = []

    async def infer(body):
        request.append(body)
        if len(request) == 12:  # the second level
            [worker] = workers_of(process)
            worker.kill()
        return http_response()

    with toy_http(kserve(infer)) as toy:
        report = ("--json", str(tmp_path / "r.json"))
        process = started(
            "m",
            "-u",
            f"127.0.0.1:{toy.port}",
            "--request-count",
            "10",
            "--concurrency-range",
            "1:3",
            *report,
        )
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "error: 2: a client process ended" in printed
    assert "Traceback" not in printed
    result = json.loads((tmp_path / "r.json").read_text())
    assert [level["requests"] for level in result["levels"]] == [10]
    assert result["trouble"].startswith("2: a client process ended")


def test_client_processes_end_with_the_measuring_process():
    request, workers = [], []

    async def infer(body):
        request.append(body)
        if len(request) == 20:
            workers.extend(workers_of(process))
            os.kill(process.pid, signal.SIGKILL)
        return http_response()

    with toy_http(kserve(infer)) as toy:
        process = started("m", "-u", f"127.0.0.1:{toy.port}", "-p", "60000")
        process.communicate(timeout=60)
        assert len(workers) == 1
        workers[0].wait(60)


def test_errors_among_successes_are_counted_and_the_status_is_0(tmp_path, capsys):
    request = []

    async def infer(body):
        request.append(body)
        return (
            http_response({"error": "no room"}, "503 x")
            if len(request) % 4 == 0
            else http_response()
        )

    with toy_http(kserve(infer)) as toy:
        made = measured(tmp_path, "m", "-u", f"127.0.0.1:{toy.port}", "--request-count", "40")
    assert made["levels"][0]["errors"] == {"503: no room": 10}
    assert "10 x 503: no room" in capsys.readouterr().out


def test_a_server_that_stops_is_reported_by_its_errors(tmp_path, capsys):
    answered = []

    async def infer(body):
        answered.append(body)
        return http_response() if len(answered) <= 10 else None

    serve = kserve(infer)

    async def respond(method, path, body):
        if path.endswith("/stats"):
            return (
                None
                if len(answered) > 10
                else http_response({"model_stats": [{"inference_count": len(answered)}]})
            )
        return await serve(method, path, body)

    with toy_http(respond) as toy:
        url = f"127.0.0.1:{toy.port}"
        made = measured(tmp_path, "m", "-u", url, "--request-count", "13")
        assert made["levels"][0]["errors"] == {
            "the server closed the connection before it responded": 3
        }
        assert made["levels"][0]["requests"] == 10
        assert made["levels"][0]["server"] == []
