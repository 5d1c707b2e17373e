"""`tritonpy batch` from and to S3, with killed runs and answers that are lost."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3fs
from moto.server import ThreadedMotoServer

from tritonpy_batch.job_folder import Store

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bucket():
    """A bucket of a local S3 server with 60 small files, and the environment to reach it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    store = s3fs.S3FileSystem(
        key="x", secret="x", endpoint_url=environment["AWS_ENDPOINT_URL"], use_listings_cache=False
    )
    store.mkdir("batches")
    for number in range(60):
        values = np.random.default_rng(number).random((200, 64), np.float32)
        column = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 64)
        with store.open(f"batches/in/{number:03}.parquet", "wb") as file:
            pq.write_table(pa.table({"image": column}), file)
    yield store, {**os.environ, **environment}
    server.stop()


def command(output):
    return [
        sys.executable, "-m", "tritonpy", "batch", "digits", "--input", "s3://batches/in",
        "--output", f"s3://batches/{output}", "--shard-size", "1B", "--progress", "none",
        "--model-repository", str(ROOT / "examples" / "models"),
    ]  # fmt: skip


def digests(store, output):
    return {
        name.rpartition("/")[2]: hashlib.sha256(store.cat_file(name)).hexdigest()
        for name in store.ls(f"batches/{output}", detail=False)
        if "part-" in name
    }


def test_killed_runs_end_with_the_bytes_of_a_whole_one(bucket):
    store, environment = bucket
    subprocess.run(command("whole"), env=environment, check=True, capture_output=True)
    whole = digests(store, "whole")
    assert len(whole) == 60
    killed = 0
    for wanted in (3, 11, 29):
        process = subprocess.Popen(
            command("out"), env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while process.poll() is None and parts(store) < wanted:
            time.sleep(0.01)
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert killed == 3
    assert parts(store) < 60
    subprocess.run(command("out"), env=environment, check=True, capture_output=True)
    assert digests(store, "out") == whole


def parts(store):
    try:
        return sum("part-" in name for name in store.ls("batches/out", detail=False, refresh=True))
    except FileNotFoundError:
        return 0


def test_a_part_that_exists_is_never_replaced(bucket, monkeypatch):
    store, environment = bucket
    subprocess.run(command("once"), env=environment, check=True, capture_output=True)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    job_folder = Store("s3://batches/once")
    file = job_folder.scratch()
    file.write_bytes(b"other")
    before = digests(store, "once")
    assert not job_folder.publish(file, "part-00000.parquet")
    assert not job_folder.create("part-00001.parquet", b"other")
    assert digests(store, "once") == before
