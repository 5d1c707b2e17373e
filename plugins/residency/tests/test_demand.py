from __future__ import annotations

from types import SimpleNamespace

import pytest
from google.protobuf import text_format

from tritonpy import InvalidArgument, MemoryUsage
from tritonpy.repository import ModelListing
from tritonpy_protos.model_config_pb2 import ModelConfig
from tritonpy_residency.demand import DemandEstimator, declared_sizes


class Loader:
    """A loader that normalizes nothing and runs instances on threads."""

    def normalized(self, config):
        return config

    def in_processes(self, prepared, config, version):
        return False


def configured(**values):
    parameters = "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in values.items()
    )
    return text_format.Parse(
        f"instance_group {{ count: 1 kind: KIND_CPU }} {parameters}", ModelConfig()
    )


@pytest.fixture
def prepared(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "weights").write_bytes(bytes(100))

    def make(fingerprint="f", **values):
        config = configured(**values)
        listing = ModelListing("m", "", {"1/weights": fingerprint}, tmp_path)
        return SimpleNamespace(
            config=config,
            original_config=config,
            listing=listing,
            directory=tmp_path,
            key="m",
            versions=(1,),
        )

    return make


def loaded(*usages):
    return [
        SimpleNamespace(runner=SimpleNamespace(memory_usage=lambda: usages)),
        SimpleNamespace(runner=None),
    ]


def test_the_demand_of_a_new_model_is_estimated_or_declared(prepared):
    estimator = DemandEstimator(Loader())
    assert (estimator.demand(prepared()).sizes, estimator.demand(prepared()).source) == (
        {"cpu": 100},
        "estimated",
    )
    demand = estimator.demand(prepared(memory_bytes="1KiB"))
    assert (demand.sizes, demand.source) == ({"cpu": 1024}, "declared")


def test_measurements_are_remembered_for_the_same_content(prepared):
    estimator = DemandEstimator(Loader())
    demand = estimator.demand(prepared())
    assert estimator.record_measured("m", demand, loaded(MemoryUsage("CPU", 0, 500))) == {
        "cpu": 500
    }
    again = estimator.demand(prepared())
    assert (again.sizes, again.source) == ({"cpu": 500}, "measured")
    assert estimator.demand(prepared(other="yes")).source == "estimated"
    estimator.record_measured("m", again, loaded(MemoryUsage("CPU", 0, 300)))
    assert estimator.demand(prepared()).sizes == {"cpu": 500}, "the most that it ever held"


def test_estimates_for_other_content_use_the_measured_ratio(prepared):
    estimator = DemandEstimator(Loader())
    estimator.record_measured("m", estimator.demand(prepared()), loaded(MemoryUsage("CPU", 0, 250)))
    assert estimator.demand(prepared("changed")).sizes == {"cpu": 250}


def test_a_declaration_is_a_lower_bound(prepared):
    estimator = DemandEstimator(Loader())
    demand = estimator.demand(prepared(memory_bytes="cpu:100,0:200"))
    usages = loaded(MemoryUsage("CPU", 0, 500), MemoryUsage("GPU", 0, 50))
    assert (
        estimator.record_measured("m", demand, usages)
        == estimator.measured(demand, usages)
        == {"cpu": 500, "0": 200}
    )


def test_without_measurements_the_demand_counts(prepared):
    estimator = DemandEstimator(Loader())
    demand = estimator.demand(prepared())
    assert (
        estimator.record_measured("m", demand, loaded())
        == estimator.measured(demand, loaded())
        == {"cpu": 100}
    )
    assert estimator.demand(prepared()).source == "estimated"


def test_declarations_are_for_the_host_or_name_devices():
    assert declared_sizes(configured()) == {}
    assert declared_sizes(configured(memory_bytes="2MiB")) == {"cpu": 2 << 20}
    assert declared_sizes(configured(memory_bytes="cpu:1KiB, 1:5")) == {"cpu": 1024, "1": 5}
    with pytest.raises(InvalidArgument, match="memory_bytes"):
        declared_sizes(configured(memory_bytes="much"))
