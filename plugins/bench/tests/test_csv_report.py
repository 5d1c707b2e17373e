from __future__ import annotations

import csv

import pytest

from tritonpy_bench.report.csv_report import write_csv

from .results import level, result


def rows(path, *levels):
    write_csv(path, result(*levels))
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("mode", "column"),
    [
        ("concurrency", "Concurrency"),
        ("request_rate", "Request Rate"),
        ("request_intervals", "Request Intervals"),
    ],
)
def test_the_first_column_is_the_load_by_perf_analyzers_name(tmp_path, mode, column):
    [row] = rows(tmp_path / "t.csv", level(2.5, mode=mode))
    assert next(iter(row.items())) == (column, "2.5")


def test_durations_are_whole_microseconds_and_network_time_excludes_the_server(tmp_path):
    [row] = rows(tmp_path / "t.csv", level())
    assert (row["p50 latency"], row["p99 latency"], row["Avg latency"]) == ("200", "300", "200")
    assert (row["Server Queue"], row["Server Compute Infer"], row["Server Compute Output"]) == (
        "5",
        "5",
        "0",
    )
    assert row["Network+Server Send/Recv"] == "195"


def test_without_statistics_the_servers_columns_are_zero(tmp_path):
    [row] = rows(tmp_path / "t.csv", level(server=()))
    assert (row["Server Queue"], row["Network+Server Send/Recv"]) == ("0", "0")


def test_a_result_without_levels_is_a_header_only(tmp_path):
    write_csv(tmp_path / "t.csv", result(levels=()))
    assert (tmp_path / "t.csv").read_text().startswith("Concurrency,")
