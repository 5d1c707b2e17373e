from __future__ import annotations

from types import SimpleNamespace

import pytest
from google.protobuf import text_format

from tritonpy.api.engine import MemoryUsage
from tritonpy.api.repository import ModelListing
from tritonpy.errors import InvalidArgument
from tritonpy.repository.budget.needs import Needs, declared_sizes
from tritonpy_protos.model_config_pb2 import ModelConfig

from ...toys.hoard import parameters


class Loader:
    """Stands in for the loader: nothing is to be normalised, and instances are threads."""

    def normalized(self, config):
        return config

    def in_processes(self, prepared, config, version):
        return False


def configured(**values):
    return text_format.Parse(f"instance_group {{ count: 1 kind: KIND_CPU }} {parameters(**values)}", ModelConfig())


@pytest.fixture
def prepared(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "weights").write_bytes(bytes(100))

    def make(fingerprint="f", **values):
        config = configured(**values)
        listing = ModelListing("m", "", {"1/weights": fingerprint}, tmp_path)
        return SimpleNamespace(config=config, given=config, listing=listing, directory=tmp_path, key="m", versions=(1,))

    return make


def loaded(*usages):
    return [SimpleNamespace(runner=SimpleNamespace(memory_usage=lambda: usages)), SimpleNamespace(runner=None)]


def test_what_was_never_loaded_is_estimated_from_its_files_or_declared(prepared):
    needs = Needs(Loader())
    assert (needs.of(prepared()).sizes, needs.of(prepared()).source) == ({"cpu": 100}, "estimated")
    need = needs.of(prepared(memory_bytes="1KiB"))
    assert (need.sizes, need.source) == ({"cpu": 1024}, "declared")


def test_what_was_measured_is_remembered_for_the_same_content(prepared):
    needs = Needs(Loader())
    need = needs.of(prepared())
    assert needs.measured("m", need, loaded(MemoryUsage("CPU", 0, 500))) == {"cpu": 500}
    again = needs.of(prepared())
    assert (again.sizes, again.source) == ({"cpu": 500}, "measured")
    assert needs.of(prepared(other="yes")).source == "estimated"
    needs.measured("m", again, loaded(MemoryUsage("CPU", 0, 300)))
    assert needs.of(prepared()).sizes == {"cpu": 500}, "the most that it ever held"


def test_other_content_of_a_model_is_taken_to_be_as_much_larger_than_its_files(prepared):
    needs = Needs(Loader())
    needs.measured("m", needs.of(prepared()), loaded(MemoryUsage("CPU", 0, 250)))
    assert needs.of(prepared("changed")).sizes == {"cpu": 250}


def test_a_declaration_is_the_least_that_a_model_is_taken_for(prepared):
    needs = Needs(Loader())
    need = needs.of(prepared(memory_bytes="cpu:100,0:200"))
    usages = loaded(MemoryUsage("CPU", 0, 500), MemoryUsage("GPU", 0, 50))
    assert needs.measured("m", need, usages) == needs.held(need, usages) == {"cpu": 500, "0": 200}


def test_where_nobody_tells_a_model_holds_what_it_needed(prepared):
    needs = Needs(Loader())
    need = needs.of(prepared())
    assert needs.measured("m", need, loaded()) == needs.held(need, loaded()) == {"cpu": 100}
    assert needs.of(prepared()).source == "estimated"


def test_declarations_are_of_the_host_or_name_their_places():
    assert declared_sizes(configured()) == {}
    assert declared_sizes(configured(memory_bytes="2MiB")) == {"cpu": 2 << 20}
    assert declared_sizes(configured(memory_bytes="cpu:1KiB, 1:5")) == {"cpu": 1024, "1": 5}
    with pytest.raises(InvalidArgument, match="memory_bytes"):
        declared_sizes(configured(memory_bytes="much"))
