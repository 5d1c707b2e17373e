"""Jobs end with one complete part per shard, whatever interrupts them."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tritonpy_batch import InvalidJob, JobFailed, run_batch

SMALL = {"shard_bytes": 1}


def digests(folder):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in Path(folder).glob("part-*")
    }


def test_every_row_has_its_result_in_the_order_of_the_input(source, options, read):
    summary = run_batch(options("double", source(95), keep=("id",), **SMALL))
    rows = read(summary.output)
    assert [row["id"] for row in rows] == list(range(95))
    assert all(row["Y"] == [2.0 * row["id"]] * 4 for row in rows)
    assert {(row["_error"], row["_attempts"]) for row in rows} == {(None, 1)}
    assert (summary.rows, summary.errors, len(summary.parts)) == (95, 0, 10)
    assert sum(part.rows for part in summary.parts) == 95


def test_small_files_share_batches_and_a_part(source, options, read):
    summary = run_batch(options("double", source(32, files=16), keep=("id",)))
    assert len(summary.parts) == 1
    assert summary.progress.batches == 4
    assert summary.progress.fill == 1.0
    assert [row["id"] for row in read(summary.output)] == list(range(32))


def test_a_second_run_does_nothing_and_reports_everything(source, options):
    job = options("double", source(40), **SMALL)
    first = run_batch(job)
    second = run_batch(job)
    assert (second.progress.rows, second.resumed) == (0, len(first.parts))
    assert second.parts == first.parts


def test_a_missing_part_is_made_again_with_the_same_bytes(source, options, tmp_path):
    job = options("double", source(60), keep=("id",), **SMALL)
    run_batch(job)
    before = digests(tmp_path / "out")
    (tmp_path / "out" / "part-00003.parquet").unlink()
    assert run_batch(job).progress.rows == 10
    assert digests(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"keep": ("id",)}, "--keep was [], is ['id']"),
        ({"model": "classes"}, "model was double, is classes"),
        ({"batch_size": 4}, "batch size was 8, is 4"),
        ({"shard_bytes": 2}, "shard bytes was 1, is 2"),
        ({"output_format": "jsonl"}, "output format was parquet, is jsonl"),
    ],
)
def test_another_job_in_the_folder_is_refused_by_name(source, options, change, text):
    folder = source(20)
    run_batch(options("double", folder, **SMALL))
    changed = {"model": "double", **SMALL, **change}
    with pytest.raises(InvalidJob) as caught:
        run_batch(options(changed.pop("model"), folder, **changed))
    assert text in str(caught.value)
    assert "--force" in str(caught.value)


def test_a_changed_configuration_of_the_model_is_refused(source, options, repository, tmp_path):
    copy = tmp_path / "models"
    shutil.copytree(repository / "double", copy / "double")
    job = options("double", source(20), repository=str(copy))
    run_batch(job)
    config = copy / "double" / "config.pbtxt"
    config.write_text(config.read_text() + "instance_group { count: 2 }\n")
    with pytest.raises(InvalidJob, match="the model's configuration was"):
        run_batch(job)


def test_changed_and_new_input_is_refused_and_force_begins_again(source, options, read):
    folder = source(20)
    job = options("double", folder, **SMALL)
    run_batch(job)
    table = pq.read_table(folder / "000.parquet")
    pq.write_table(table.slice(0, 3), folder / "000.parquet")
    pq.write_table(table, folder / "new.parquet")
    with pytest.raises(InvalidJob) as caught:
        run_batch(job)
    assert "input changed: " in str(caught.value)
    assert "new input: " in str(caught.value)
    again = options("double", folder, force=True, **SMALL)
    assert run_batch(again).rows == 23 == len(read(again.output))


def test_poison_rows_are_isolated_and_the_others_have_results(options, tmp_path, read):
    values = [float(each) for each in range(64)]
    pq.write_table(pa.table({"X": values}), tmp_path / "x.parquet")
    summary = run_batch(options("poison", tmp_path / "x.parquet", max_errors="1"))
    rows = read(summary.output)
    assert [at for at, row in enumerate(rows) if row["_error"]] == [13]
    assert "13 is not allowed" in rows[13]["_error"]
    assert rows[13]["Y"] is None
    assert [row["Y"] for at, row in enumerate(rows) if at != 13] == [
        2 * each for each in values if each != 13
    ]
    assert summary.first_errors == [f"{tmp_path}/x.parquet, row 14: 13 is not allowed"]


def test_a_row_that_ends_the_worker_costs_only_itself(options, tmp_path, read):
    values = [float(each) for each in range(20)] + [666.0]
    pq.write_table(pa.table({"X": values}), tmp_path / "x.parquet")
    job = options("poison", tmp_path / "x.parquet", max_errors="2", retries=1)
    rows = read(run_batch(job).output)
    assert [at for at, row in enumerate(rows) if row["_error"]] == [13, 20]
    assert rows[20]["_attempts"] == 2


def test_too_many_errors_end_the_job_with_examples(options, tmp_path):
    pq.write_table(pa.table({"X": [13.0] * 20}), tmp_path / "x.parquet")
    with pytest.raises(JobFailed) as caught:
        run_batch(options("poison", tmp_path / "x.parquet"))
    assert "20 of 20 rows failed, more than --max-errors 1%" in str(caught.value)
    assert "row 1: 13 is not allowed" in str(caught.value)


def test_on_error_fail_ends_the_job_at_the_row(options, tmp_path):
    pq.write_table(pa.table({"X": [1.0, 2.0, 13.0]}), tmp_path / "x.parquet")
    with pytest.raises(JobFailed, match=r"x\.parquet, row 3: 13 is not allowed"):
        run_batch(options("poison", tmp_path / "x.parquet", on_error="fail"))
    assert not list((tmp_path / "out").glob("part-*"))
    assert not list((tmp_path / "out" / "_tritonpy_batch" / "scratch").iterdir())


@pytest.mark.parametrize(
    ("policy", "expected"), [("skip", [2.0, None, 6.0]), ("default", [2.0, 0.0, 6.0])]
)
def test_null_values_follow_the_policy(options, tmp_path, read, policy, expected):
    pq.write_table(pa.table({"X": [1.0, None, 3.0]}), tmp_path / "x.parquet")
    summary = run_batch(options("poison", tmp_path / "x.parquet", nulls=policy))
    assert [row["Y"] for row in read(summary.output)] == expected
    assert summary.progress.skipped == (policy == "skip")
    assert summary.errors == 0


def test_null_values_fail_with_their_place(options, tmp_path):
    pq.write_table(pa.table({"X": [1.0, None, 3.0]}), tmp_path / "x.parquet")
    with pytest.raises(JobFailed, match=r"x\.parquet, row 2: column 'X' is null: give --nulls"):
        run_batch(options("poison", tmp_path / "x.parquet"))


def test_processes_on_one_folder_share_the_shards(source, options, read):
    job = options("double", source(300), keep=("id",), **SMALL)
    summaries = []
    threads = [threading.Thread(target=lambda: summaries.append(run_batch(job))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(summaries) == 3
    assert {summary.rows for summary in summaries} == {300}
    assert sum(summary.progress.rows for summary in summaries) == 300
    assert [row["id"] for row in read(job.output)] == list(range(300))


def test_shares_of_machines_are_disjoint_and_complete(source, options, read):
    folder = source(100)
    rows = [run_batch(options("double", folder, share=(n, 3), **SMALL)).rows for n in (1, 2, 3)]
    assert sum(rows) == 100
    assert min(rows) == 30
    assert len(read(options("double", folder).output)) == 100


def command(folder, repository, output):
    return [
        sys.executable, "-m", "tritonpy", "batch", "double", "--input", str(folder),
        "--model-repository", str(repository), "--output", str(output), "--keep", "id",
        "--shard-size", "1B", "--progress", "none", "--json",
    ]  # fmt: skip


@pytest.mark.parametrize("kills", [20])
def test_kills_at_random_moments_leave_the_bytes_of_an_uninterrupted_run(
    source, repository, tmp_path, kills
):
    folder = source(6000, files=4, group=10)
    subprocess.run(command(folder, repository, tmp_path / "whole"), check=True, capture_output=True)
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    killed = 0
    output = tmp_path / "out"
    for _ in range(kills):
        before = len(list(output.glob("part-*")))
        # until some parts more exist, so that every kill interrupts work
        wanted = before + chance.randrange(1, 9)
        process = subprocess.Popen(
            command(folder, repository, output), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while process.poll() is None and len(list(output.glob("part-*"))) < wanted:
            os.sched_yield()
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert killed == kills
    assert len(list(output.glob("part-*"))) < 600
    done = subprocess.run(command(folder, repository, output), check=True, capture_output=True)
    assert digests(output) == digests(tmp_path / "whole")
    assert json.loads(done.stdout)["resumed"] > 0
    assert not list((output / "_tritonpy_batch" / "scratch").iterdir())


def test_an_interrupt_keeps_parts_and_prints_how_to_continue(source, repository, tmp_path):
    output = tmp_path / "out"
    process = subprocess.Popen(
        command(source(6000, group=10), repository, output),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(output.glob("part-*")):
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert f"tritonpy batch double --input {tmp_path / 'in'}" in errors
    assert not list((output / "_tritonpy_batch" / "leases").iterdir())


MEMORY = """
import re, sys
from pathlib import Path
from tritonpy_batch import BatchOptions, run_batch
summary = run_batch(BatchOptions(
    model="largest", inputs=(sys.argv[1],), output=sys.argv[2], repository=sys.argv[3],
    shard_bytes=1 << 30,
))
# getrusage would count the process that started this one
print(summary.rows, re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def test_memory_is_bounded_however_large_the_input_is(repository, tmp_path):
    # all of it runs in about a minute; a sample shows the same, since memory does not grow
    gib = 4 if "TRITONPY_SUITE_SHARE" in os.environ else 50
    rows, width = gib << 10, 1 << 18  # rows of 1 MiB
    file = tmp_path / "sparse.npy"
    with file.open("wb") as handle:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, width)}
        np.lib.format.write_array_header_1_0(handle, header)
        handle.truncate(handle.tell() + rows * width * 4)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(file), str(tmp_path / "out"), str(repository)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    file.unlink()
    found, kilobytes = map(int, done.stdout.split())
    print(f"{gib} GiB of input: {kilobytes >> 10} MiB of resident memory")
    assert found == rows
    assert kilobytes < 1 << 20
