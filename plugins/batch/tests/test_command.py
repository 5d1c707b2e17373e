"""The command line: options, the dry run, output and the report."""

from __future__ import annotations

import argparse
import json

import numpy as np
import pytest

from tritonpy_batch import InvalidJob
from tritonpy_batch.command import BatchCommand, make_options
from tritonpy_batch.dry_run import dry_run
from tritonpy_batch.options import parse_size
from tritonpy_batch.progress import progress_view
from tritonpy_batch.report import report_html
from tritonpy_batch.summary import JobProgress, JobSummary, RateSample


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    BatchCommand().configure(parser)
    return parser.parse_args(["m", *arguments])


def test_flags_become_options():
    options = make_options(
        parsed(
            "--input", "a", "--input", "b", "--output", "o", "--map", "X=a,b", "--keep", "k,l",
            "--keep", "m", "--memory", "2GiB", "--shard", "2/3", "-H", "A: b",
        )
    )  # fmt: skip
    assert options.inputs == ("a", "b")
    assert options.columns == (("X", ("a", "b")),)
    assert options.keep == ("k", "l", "m")
    assert (options.memory, options.share) == (2 << 30, (2, 3))
    assert options.headers == (("A", "b"),)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--output", "o"], "no input: give --input URL"),
        (["--input", "i"], "no output: give --output FOLDER"),
        (["--input", "i", "--output", "o", "--map", "X"], "--map X: expected NAME=VALUE"),
        (["--input", "i", "--output", "o", "--shard", "x"], "--shard x: expected I/N"),
        (["--input", "i", "--output", "o", "--memory", "1 parsec"], "'1 parsec' is no size"),
        (["--input", "i", "--output", "o", "-u", "h", "--config", "f"], "give one of"),
    ],
)
def test_invalid_flags_are_explained(flags, text):
    with pytest.raises(InvalidJob) as caught:
        make_options(parsed(*flags))
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("64MiB", 64 << 20), ("1.5 GiB", 3 << 29), ("2kb", 2000)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


def test_the_command_writes_parts_a_report_and_json(source, repository, tmp_path, capsys):
    arguments = parsed(
        "--input", str(source(30)), "--output", str(tmp_path / "out"),
        "--model-repository", str(repository), "--json", "-o", str(tmp_path / "r.html"),
    )  # fmt: skip
    arguments.model = "double"
    assert BatchCommand().run(arguments) == 0
    summary = json.loads(capsys.readouterr().out)
    assert sum(part["rows"] for part in summary["parts"]) == 30
    assert "<h1>double 1</h1>" in (tmp_path / "r.html").read_text()


def test_invalid_jobs_have_exit_status_2(tmp_path, capsys):
    arguments = parsed("--input", str(tmp_path / "none"), "--output", str(tmp_path / "out"))
    assert BatchCommand().run(arguments) == 2
    assert "error: --input" in capsys.readouterr().err


def test_the_dry_run_shows_mapping_rows_and_an_estimate(options, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((40, 4), np.float32))
    text = dry_run(options("classes", tmp_path / "x.npy", top=1))
    assert "1 files (npy), 640 B" in text
    assert "model classes, batches of 8" in text
    assert "input X FP32[4] from data (fixed_size_list<item: float>[4])" in text
    assert f"{tmp_path}/x.npy, row 3" in text
    assert '[{"score":1.0,"index":0,"label":"zero"}]' in text
    assert "about 40 rows in" in text
    assert not (tmp_path / "out").exists()


def test_the_report_has_a_chart_and_escapes_texts():
    progress = JobProgress(rows=100, seconds=2.0)
    samples = [RateSample(each / 4, each * 10, 2) for each in range(9)]
    summary = JobSummary("m<b>", "1", "out", "cmd", [], progress, 0, samples, ["<script>"])
    text = report_html(summary)
    assert "m&lt;b&gt;" in text
    assert "<script>" not in text
    assert text.count(",20.0") == 8  # a constant rate is a straight line
    assert "40/s" in text


def test_a_terminal_gets_a_bar(tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    file = tmp_path / "progress"
    with file.open("w") as out, progress_view("auto", out) as view:
        progress = JobProgress(
            total_bytes=4, done_bytes=1, rows=3, seconds=1.5, fill=0.5, busy=0.25
        )
        view.update(progress)
        view._bar.refresh()
    text = file.read_text()
    for part in ("3 rows", "2/s", "batches 50% full", "busy 25%", "25%"):
        assert part in text


@pytest.mark.parametrize("kind", ["auto", "json", "none"])
def test_progress_is_written_to_files_as_lines(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("tritonpy_batch.progress._LINE_EVERY_S", 0.0)
    file = tmp_path / "progress"
    with file.open("w") as out, progress_view(kind, out) as view:
        view.update(JobProgress(total_bytes=4, done_bytes=1, rows=3, seconds=1.5, errors=2))
    text = file.read_text()
    if kind == "json":
        assert json.loads(text)["rate"] == 2.0
    elif kind == "auto":
        assert "25%  3 rows  2/s" in text
        assert "2 errors" in text
    else:
        assert text == ""
