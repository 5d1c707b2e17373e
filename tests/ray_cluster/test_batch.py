"""Jobs and datasets on a cluster of three nodes, each a raylet on this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import ray.cluster_utils

from tritonpy_batch import BatchOptions, predict, run_batch
from tritonpy_batch.adapters import run_on_ray
from tritonpy_batch.progress import NoProgress

# Ray warns about its own settings
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
MODELS = Path(__file__).parents[2] / "examples" / "models"


@pytest.fixture(scope="module")
def cluster():
    made = ray.cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20}
    )
    for _ in range(2):
        made.add_node(num_cpus=2, object_store_memory=80 << 20)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def pixels(rows):
    return np.random.default_rng(0).random((rows, 64), np.float32)


@pytest.fixture
def scans(tmp_path):
    column = pa.FixedSizeListArray.from_arrays(pa.array(pixels(6000).reshape(-1)), 64)
    pq.write_table(pa.table({"image": column}), tmp_path / "x.parquet", row_group_size=100)
    return tmp_path / "x.parquet"


def options(scans, output):
    return BatchOptions(
        model="digits", inputs=(str(scans),), output=str(output), repository=str(MODELS),
        shard_bytes=1,
    )  # fmt: skip


def test_tasks_share_a_job_and_its_bytes_are_those_of_one_process(cluster, scans, tmp_path):
    run_batch(options(scans, tmp_path / "one"))
    summary = run_on_ray(options(scans, tmp_path / "ray"), cluster.address, 0, NoProgress())
    assert (summary.rows, len(summary.parts), summary.progress.rows) == (6000, 60, 0)
    for part in (tmp_path / "one").glob("part-*"):
        assert part.read_bytes() == (tmp_path / "ray" / part.name).read_bytes()


def test_a_dataset_gets_the_outputs_of_a_model(cluster):
    values = pixels(300)
    dataset = ray.data.from_numpy(values).rename_columns({"data": "image"})
    rows = predict(dataset, "digits", str(MODELS), batch_size=50).take_all()
    assert len(rows) == 300
    assert {row["scores"].shape for row in rows} == {(10,)}
    assert np.allclose([row["scores"].sum() for row in rows], 1, atol=1e-4)
