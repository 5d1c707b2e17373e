from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

import tritonpy_bench
from tritonpy.cli import main
from tritonpy_bench.command import BenchCommand
from tritonpy_testing import CommandContract

QUICK = ("--request-count", "40")


class TestContract(CommandContract):
    plugin_class = BenchCommand
    plugin = tritonpy_bench
    name = "bench"

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.arguments = ("sums", "-u", server.http, *QUICK)


def bench(capsys, *arguments, status=0):
    """Run the command and return its standard output and standard error."""
    found = main(["bench", *arguments])
    printed = capsys.readouterr()
    assert found == status, printed.out + printed.err
    return printed.out, printed.err


def measured(capsys, tmp_path, *arguments, status=0):
    """Run the command and return the levels of its JSON result."""
    bench(capsys, *arguments, "--json", str(tmp_path / "result.json"), status=status)
    return json.loads((tmp_path / "result.json").read_text())["levels"]


MODES = {
    "http, JSON tensors": ("-i", "http", "--input-tensor-format", "json"),
    "http, shared memory": ("-i", "http", "--shared-memory", "system"),
    "http, Poisson": (
        "-i",
        "http",
        "--request-rate-range",
        "400",
        "--request-distribution",
        "poisson",
    ),
    "grpc, compressed": ("-i", "grpc", "--grpc-compression-algorithm", "gzip"),
    "grpc, shared memory": ("-i", "grpc", "--shared-memory", "system"),
    "grpc, rate": ("-i", "GRPC", "--request-rate-range", "400"),
    "grpc, streams": ("-i", "grpc", "--streaming", "--connections", "2"),
}


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_sends_exactly_the_requested_number_of_requests(server, capsys, tmp_path, mode):
    arguments = MODES[mode]
    rate = "--request-rate-range" in arguments
    more = () if rate else ("--concurrency-range", "3")
    [level] = measured(
        capsys,
        tmp_path,
        "sums",
        "-u",
        getattr(server, arguments[1].lower()),
        "-b",
        "2",
        *QUICK,
        *arguments,
        *more,
    )
    assert (level["requests"], level["failed"], level["responses"]) == (40, 0, 40)
    assert level["latency"]["count"] == level["service"]["count"] == 40
    assert level["inferences_per_s"] == pytest.approx(2 * level["requests_per_s"])
    [share] = level["server"]
    assert share["inferences"] == 80
    assert share["stages"]["success"]["count"] == 40
    assert sum(int(size) * count for size, count in share["batches"].items()) == 80


def test_warm_up_requests_are_sent_and_not_counted(server, capsys, tmp_path):
    more = ("--warmup-request-count", "30", "--client-processes", "2", "--concurrency-range", "4")
    before = server.engine.statistics("sums")[0].inference_count
    [level] = measured(capsys, tmp_path, "sums", "-u", server.http, *QUICK, *more)
    assert level["requests"] == 40
    assert server.engine.statistics("sums")[0].inference_count - before == 70


def test_windows_repeat_until_they_agree_or_the_maximum_is_reached(server, capsys, tmp_path):
    quick = ("-p", "1000", "--stability-percentage", "1000000", "--max-trials", "9")
    [level] = measured(capsys, tmp_path, "sums", "-u", server.http, *quick)
    assert (level["windows"], level["stable"]) == (3, True)
    [level] = measured(
        capsys, tmp_path, "sums", "-u", server.http, "-p", "200", "--max-trials", "2"
    )
    assert (level["windows"], level["stable"]) == (2, False)


def test_a_sweep_measures_each_level_and_its_table_has_perf_analyzers_columns(
    server, capsys, tmp_path
):
    table = tmp_path / "levels.csv"
    bench(
        capsys, "sums", "-u", server.http, *QUICK, "--concurrency-range", "1:5:2", "-f", str(table)
    )
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["Concurrency"] for row in rows] == ["1", "3", "5"]
    for row in rows:
        assert float(row["Inferences/Second"]) > 0
        assert float(row["p50 latency"]) <= float(row["p99 latency"])
        assert row["Server Queue"].isdigit()


def test_responses_of_a_decoupled_model_are_distinguished(server, capsys, tmp_path):
    data = tmp_path / "data.json"
    data.write_text('{"data": [{"IN": [3]}, {"IN": [0]}]}')
    streams = (
        "-i",
        "grpc",
        "--streaming",
        "-u",
        server.grpc,
        "--input-data",
        str(data),
        "--concurrency-range",
        "2",
    )
    printed, _ = bench(capsys, "many", *QUICK, *streams, "--json", str(tmp_path / "result.json"))
    [level] = json.loads((tmp_path / "result.json").read_text())["levels"]
    assert (level["requests"], level["failed"], level["responses"]) == (40, 0, 60)
    assert level["first"]["count"] == 20
    assert level["between"]["count"] == 40
    assert "1.50 per request" in printed


def test_a_decoupled_model_without_streams_is_a_usage_error(server, capsys):
    for arguments in (("-u", server.http), ("-u", server.grpc, "-i", "grpc")):
        _, error = bench(capsys, "many", *arguments, status=2)
        assert (
            error
            == "error: model 'many' is decoupled and responds on gRPC streams: use -i grpc --streaming\n"
        )


def test_an_error_on_a_stream_is_counted_by_its_text(server, capsys, tmp_path):
    data = tmp_path / "data.json"
    data.write_text('{"data": [{"IN": [1]}, {"IN": [-1]}]}')
    streams = ("-i", "grpc", "--streaming", "-u", server.grpc, "--input-data", str(data))
    [level] = measured(capsys, tmp_path, "many", *QUICK, *streams)
    assert (level["requests"], level["failed"]) == (20, 20)
    assert list(level["errors"].values()) == [20]
    assert "too few" in next(iter(level["errors"]))


@pytest.mark.parametrize("mode", [("-i", "http"), ("-i", "grpc"), ("-i", "grpc", "--streaming")])
def test_if_every_request_fails_the_status_is_1_and_the_errors_are_printed(
    server, capsys, tmp_path, mode
):
    arguments = ("failing", "-u", getattr(server, mode[1]), *QUICK, *mode)
    printed, _ = bench(capsys, *arguments, "--json", str(tmp_path / "result.json"), status=1)
    [level] = json.loads((tmp_path / "result.json").read_text())["levels"]
    assert (level["requests"], level["failed"]) == (0, 40)
    assert "every request failed" in printed
    assert "40 x " in printed
    assert "this model never works" in printed


def test_a_threshold_that_no_level_keeps_is_status_1_and_ends_the_sweep(server, capsys, tmp_path):
    range_ = ("--concurrency-range", "1:0:1")
    levels = measured(
        capsys, tmp_path, "sums", "-u", server.http, *QUICK, *range_, "-l", "0.000001", status=1
    )
    assert [level["kept"] for level in levels] == [False]


def test_a_binary_search_with_only_good_levels_measures_both_ends(server, capsys, tmp_path):
    search = ("--binary-search", "--concurrency-range", "1:4:1", "-l", "1000000")
    levels = measured(capsys, tmp_path, "sums", "-u", server.http, *QUICK, *search)
    assert [level["level"] for level in levels] == [1, 4]


def test_an_ensemble_shows_its_member_models(server, capsys, tmp_path):
    [level] = measured(capsys, tmp_path, "chain", "-u", server.http, "--shape", "X:3,2", *QUICK)
    assert [share["model"] for share in level["server"]] == ["chain", "varied"]
    assert level["server"][1]["inferences"] == 40


def test_a_missing_variable_shape_is_named(server, capsys):
    _, error = bench(capsys, "varied", "-u", server.http, status=2)
    assert error == (
        "error: input 'IN' of model 'varied' has the variable shape [-1, 2]: set it, for example with --shape IN:8,2\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("sums", "--concurrency-range", "x"), "--concurrency-range"),
        (("sums", "--concurence-range=1"), "did you mean '--concurrency-range'?"),
        (("sums", "-H", "no-colon"), "'no-colon' is not a header"),
        (("sums", "-b", "0"), "-b must be at least 1"),
        (("sums", "--streaming"), "--streaming needs gRPC"),
        (("sums", "--json", "/no/such/folder/x.json"), "/no/such/folder/x.json cannot be written"),
        ((), "no model was given"),
        (("a", "-m", "b"), "two models were given: a and b"),
        (("--report", "/no/such.json", "-o", "x.html"), "/no/such.json is not a result"),
        (("--report", "/no/such.json"), "-o report.html"),
    ],
)
def test_a_usage_error_is_status_2_and_one_line(capsys, arguments, text):
    _, error = bench(capsys, *arguments, status=2)
    assert text in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_an_unreachable_server_gives_status_1(capsys, protocol, free_port):
    _, error = bench(capsys, "sums", "-i", protocol, "-u", f"127.0.0.1:{free_port}", status=1)
    assert f"127.0.0.1:{free_port}" in error
    assert "cannot reach a server" in error


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_missing_model_is_reported_with_the_servers_text(server, capsys, protocol):
    _, error = bench(capsys, "nosuch", "-i", protocol, "-u", getattr(server, protocol), status=1)
    assert "'nosuch' is not found" in error


def test_the_help_of_other_commands_does_not_import_bench_modules():
    script = (
        "import sys; from tritonpy.cli import main; main(['--help']); "
        "print([name for name in ('rich', 'uvloop', 'httptools', 'grpc') if name in sys.modules "
        "and name not in before], [name for name in sys.modules if name.startswith('tritonpy_bench')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; import tritonpy.cli; before = set(sys.modules); {script}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = done.stdout.splitlines()[-1]
    assert "tritonpy_bench.command" in loaded
    for module in (
        "tritonpy_bench.session",
        "tritonpy_bench.options",
        "tritonpy_load_generator.wire",
        "tritonpy_bench.report",
    ):
        assert module not in loaded
    assert loaded.startswith("[]")
