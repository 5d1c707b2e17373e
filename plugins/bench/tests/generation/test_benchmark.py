"""Whole benchmarks of a stub server, through the command line."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tritonpy.cli import main

METRICS = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model="m"} 2
# TYPE vllm:request_queue_time_seconds histogram
vllm:request_queue_time_seconds_bucket{le="+Inf"} 4
vllm:request_queue_time_seconds_sum 1
vllm:request_queue_time_seconds_count 4
"""


@pytest.fixture
def bench(stub, capsys):
    def run(*arguments, kind="chat"):
        status = main(["bench", "m", f"--endpoint-type={kind}", f"-u={stub.url}", *arguments])
        written = capsys.readouterr()
        return status, written.out, written.err

    return run


def test_a_closed_loop_keeps_requests_in_flight(bench, stub):
    stub.reports_usage, stub.pause_s = True, 0.002
    status, out, _ = bench(
        "--streaming", "--concurrency-range=4", "--request-count=24", "--osl=5", "--api-key=k",
    )  # fmt: skip
    assert status == 0
    assert "concurrency 4: 24 requests in" in out
    assert "output 5.0 tokens (5 to 5)" in out
    assert "(counted by usage)" in out
    assert len(stub.requests) == 24
    path, body, headers = stub.requests[0]
    assert path == "/v1/chat/completions"
    assert (body["max_tokens"], body["stream"]) == (5, True)
    assert headers["Authorization"] == "Bearer k"


def test_a_sweep_is_written_to_all_files(bench, stub, tmp_path):
    files = {name: tmp_path / f"r.{name}" for name in ("json", "csv", "html")}
    status, out, _ = bench(
        "--streaming", "--concurrency-range=1:3:2", "--request-count=6", "--osl=4",
        "--goodput=ttft:10000", "--names=vllm", f"--json={files['json']}", f"-f={files['csv']}",
        f"-o={files['html']}",
    )  # fmt: skip
    assert status == 0
    assert "parts of streams are counted as tokens" in out
    levels = json.loads(files["json"].read_text())["levels"]
    assert [each["level"] for each in levels] == [1, 3]
    assert levels[0]["named"]["completed"] == 6
    with files["csv"].open() as table:
        rows = list(csv.DictReader(table))
    assert [row["level"] for row in rows] == ["concurrency 1", "concurrency 3"]
    assert float(rows[0]["mean_ttft_ms"]) > 0
    page = files["html"].read_text()
    assert page.count("<svg") == 5
    assert "goodput" in page
    again = tmp_path / "both.html"
    assert (
        main(["bench", "--report", str(files["json"]), str(files["json"]), "-o", str(again)]) == 0
    )
    assert "2 benchmarks of language models" in again.read_text()


def test_an_open_loop_does_not_wait_for_responses(bench, stub):
    stub.pause_s = 0.05
    status, out, _ = bench(
        "--streaming", "--request-rate-range=200", "--request-count=20", "--osl=4",
        "--request-distribution=gamma", "--burstiness=0.5",
    )  # fmt: skip
    assert status == 0
    assert "200 requests/s: 20 requests" in out
    assert len(stub.requests) == 20


def test_a_schedule_is_one_level(bench, stub, tmp_path):
    trace = tmp_path / "trace.jsonl"
    lines = [{"text": "a", "output_length": 2, "timestamp": at} for at in (1000, 1005, 1030)]
    trace.write_text("\n".join(map(json.dumps, lines)))
    status, out, _ = bench("--streaming", "--fixed-schedule", f"--input-file={trace}")
    assert status == 0
    assert "schedule: 3 requests" in out
    assert [body["max_tokens"] for _, body, _ in stub.requests] == [2, 2, 2]


def test_a_session_continues_with_the_answers(bench, stub):
    status, _, _ = bench(
        "--streaming", "--num-sessions=2", "--turns=3", "--think-time=0.01", "--osl=2",
        "--concurrency-range=2",
    )  # fmt: skip
    assert status == 0
    lengths = sorted(len(body["messages"]) for _, body, _ in stub.requests)
    assert lengths == [1, 1, 3, 3, 5, 5]
    longest = max((body["messages"] for _, body, _ in stub.requests), key=len)
    assert longest[1] == {"role": "assistant", "content": "word0 word1 "}


def test_clients_that_leave_are_in_no_figure(bench, stub):
    stub.pause_s = 0.02
    status, out, _ = bench(
        "--streaming", "--request-cancellation-rate=50", "--request-cancellation-delay=0.03",
        "--request-count=20", "--osl=10", "--concurrency-range=5",
    )  # fmt: skip
    assert status == 0
    assert "requests were cancelled, as wanted" in out


def test_failed_requests_and_short_answers_are_reported(bench, stub):
    stub.fails, stub.short_by = True, 1
    status, out, _ = bench("--request-count=10", "--osl=4")
    assert status == 0
    assert "5 requests failed: 429 too many requests" in out
    assert "5 responses are shorter than wanted" in out


@pytest.mark.parametrize("kind", ["completions", "embeddings", "generate", "generate_stream"])
def test_other_endpoints(bench, stub, kind):
    status, out, _ = bench("--request-count=4", "--osl=3", kind=kind)
    assert status == 0
    assert "4 requests in" in out


def test_other_prompts_warm_up(bench, stub):
    status, _, _ = bench("--request-count=4", "--warmup-request-count=3", "--osl=2")
    assert status == 0
    prompts = [body["messages"][0]["content"] for _, body, _ in stub.requests]
    assert len(prompts) == len(set(prompts)) == 7


def test_the_servers_own_figures_are_printed(bench, stub):
    stub.metrics = METRICS
    status, out, _ = bench("--request-count=4", f"--metrics-url={stub.url}/metrics")
    assert status == 0
    assert "waiting 2.0 mean, 2 max" in out


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--metrics-url=127.0.0.1:1/metrics",), 2, "--metrics-url"),
        (("--json=/nowhere/x",), 2, "its folder does not exist"),
        (("-u=127.0.0.1:1",), 1, "no server answers at 127.0.0.1:1"),
    ],
)
def test_what_prevents_a_benchmark_is_reported(bench, arguments, status, text):
    found, _, err = bench(*arguments)
    assert found == status
    assert text in err


def test_every_request_that_fails_is_a_failure(bench, stub):
    status, out, _ = bench("--request-count=3", "--endpoint=/tokenize")
    assert status == 1
    assert "responses were empty" in out or "failed" in out


def test_the_example_of_the_readme_works(stub, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^tritonpy (bench .*--endpoint-type.*)$", text, re.MULTILINE)
    arguments = shlex.split(command.replace("localhost:9000", stub.url))
    assert main([*arguments, "--request-count=4"]) == 0
    assert "concurrency 9: 4 requests in" in capsys.readouterr().out
    assert (tmp_path / "llm.html").exists()


def test_ctrl_c_keeps_the_results_so_far(stub, tmp_path):
    stub.pause_s = 0.01
    process = subprocess.Popen(
        [
            sys.executable, "-m", "tritonpy", "bench", "m", "--endpoint-type=chat", "--streaming",
            f"-u={stub.url}", "--request-count=100000", "--osl=3", f"--json={tmp_path / 'r.json'}",
        ],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while len(stub.requests) < 5:
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "requests in interrupted" in out
    assert json.loads((tmp_path / "r.json").read_text())["levels"][0]["interrupted"]
