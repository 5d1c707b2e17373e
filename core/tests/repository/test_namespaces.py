from __future__ import annotations

import pytest

from tritonpy.errors import InvalidArgument, NotFound
from tritonpy_testing import ModelRepository

from ..toys.serving import ask
from .ensembles import PLUGIN, write_ensemble
from .version_backend import error_of, index, write


@pytest.fixture
def other(tmp_path):
    return ModelRepository(tmp_path / "other")


@pytest.fixture
def served(serve, model_repository, other):
    """Serve two repositories: m is in both (returns 1 and 2), a in the first and b in the second."""
    for number, (repository, own) in enumerate(((model_repository, "a"), (other, "b")), 1):
        write(repository, "m", number)
        write(repository, own, 10 * number)
        write_ensemble(repository, f"over_{own}", "m")
        write_ensemble(repository, "over", "m")
    write_ensemble(model_repository, "across", "b")
    both = [{"url": str(model_repository.path)}, {"url": str(other.path)}]
    return lambda **settings: serve(PLUGIN, repositories=both, model_namespacing=True, **settings)


@pytest.fixture
def ambiguous():
    return lambda name: (
        f"There are 2 identifiers of model '{name}' in global map, model namespace must be provided to resolve ambiguity."
    )


def test_a_name_that_is_unique_is_enough_and_an_ambiguous_one_is_refused(served, number, ambiguous):
    with served(mode="none") as server:
        assert (number(server, "a"), number(server, "b")) == (10, 20)
        for name in ("m", "over"):
            for call in (lambda name: number(server, name), server.engine.model_metadata, server.engine.model_config):
                error = error_of(call, name)
                assert (type(error), error.message) == (InvalidArgument, ambiguous(name))
            assert error_of(server.engine.statistics, name).message == f"requested model '{name}' is not available"


def test_ensembles_find_members_of_their_own_repository_first(served, number):
    with served(mode="none") as server:
        assert [number(server, name) for name in ("over_a", "over_b", "across")] == [1, 2, 20]


def test_their_configuration_says_where_the_members_were_found(served, model_repository, other):
    with served(mode="none") as server:
        found = {
            name: server.engine.model_config(name).ensemble_scheduling.step[0].model_namespace
            for name in ("over_a", "over_b", "across")
        }
    assert found == {"over_a": str(model_repository.path), "over_b": str(other.path), "across": str(other.path)}


def test_the_index_lists_all_of_them_repository_by_repository(served, model_repository, other):
    with served(mode="none") as server:
        names = [name for name, _, state, _ in index(server) if state == "READY"]
    first, second = ["a", "across", "m", "over", "over_a"], ["b", "m", "over", "over_b"]
    assert names == (first + second if str(model_repository.path) < str(other.path) else second + first)


def test_statistics_and_gauges_are_kept_apart(served, model_repository, other, recorder):
    with served(mode="none") as server:
        recorder.wait(ask(server.engine, recorder, "over_b", [0]))
        counted = {one.namespace: one.inference_count for one in server.engine.statistics() if one.name == "m"}
        gauges = server.engine.gauges()
        assert (f"{other.path}::m", "1") in gauges
        assert (f"{model_repository.path}::m", "1") in gauges
    assert counted == {str(model_repository.path): 0, str(other.path): 1}


def test_loads_and_unloads_apply_to_all_models_of_the_name(served, number, ambiguous):
    with served() as server:
        unknown = error_of(number, server, "m")
        assert (type(unknown), unknown.message) == (InvalidArgument, "Request for unknown model: 'm' is not found")
        server.engine.load_model("over_a")
        assert error_of(number, server, "m").message == ambiguous("m")
        assert number(server, "over_a") == 1
        server.engine.unload_model("m")
        error = error_of(number, server, "m")
        assert (type(error), error.message) == (NotFound, "Identifier of model 'm' is not found in global map")
        server.engine.load_model("m")
        assert number(server, "over_a") == 1


def test_an_error_names_the_model_with_its_namespace(served, model_repository):
    write_ensemble(model_repository, "wrong", "m", version=7)
    here = model_repository.path
    with served() as server:
        assert error_of(server.engine.load_model, "wrong").message == (
            f"load failed for model '{here}::wrong': ensemble '{here}::wrong' depends on '{here}::m' whose required version 7 is not loaded.\n"
        )


def test_members_are_resolved_again_when_models_with_their_name_change(served, model_repository, number, ambiguous):
    with served(mode="poll", control={"interval_s": 3600}) as server:
        model_repository.remove("m")
        server._repository.poll()
        assert [number(server, name) for name in ("over_a", "over_b", "m")] == [2, 2, 2]
        write(model_repository, "m", 3)
        server._repository.poll()
        assert [number(server, name) for name in ("over_a", "over_b")] == [3, 2]
        assert error_of(number, server, "m").message == ambiguous("m")


def test_a_model_loaded_from_a_requests_files_has_no_namespace(served, number):
    with served() as server:
        config = '{"backend": "version_reporter"}'
        server.engine.load_model("new", config, {"file:1/model.txt": b"5"})
        assert number(server, "new") == 5
        server.engine.unload_model("new")
        assert error_of(number, server, "new").message.endswith("'new' has no available versions")


def test_a_failure_in_one_repository_is_reported_and_the_other_serves(served, other, number):
    write(other, "m", "cannot be loaded")
    with served() as server:
        assert "no weights" in error_of(server.engine.load_model, "m").message
        server.engine.load_model("over_a")
        assert number(server, "over_a") == 1


def test_both_failures_are_reported(served, model_repository, other):
    for repository in (model_repository, other):
        write(repository, "m", "cannot be loaded")
    with served() as server:
        message = error_of(server.engine.load_model, "m").message
    assert [str(repository.path) in message for repository in (model_repository, other)] == [True, True]


def test_without_namespaces_the_same_name_in_both_is_refused(served, serve, model_repository, other):
    both = [{"url": str(model_repository.path)}, {"url": str(other.path)}]
    with serve(PLUGIN, repositories=both) as server:
        text = "failed to load 'm', failed to poll from model repository: model appears in two or more repositories"
        assert error_of(server.engine.load_model, "m").message == text
