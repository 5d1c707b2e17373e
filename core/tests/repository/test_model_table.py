from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tritonpy.api.engine import ModelIndex
from tritonpy.repository.model_table import (
    LAZY,
    NO_VERSION,
    UNLOADED,
    LazyListing,
    ModelTable,
    State,
)
from tritonpy_testing import ModelRepository
from tritonpy_types.errors import InvalidArgument, NotFound, Unavailable

from ..toys.serving import ask
from .ensembles import PLUGIN, write_ensemble
from .version_backend import error_of, index, write


@dataclass(frozen=True)
class Model:
    """Replaces a loaded version."""

    name: str
    version: int


def models(*versions):
    return {version: Model("m", version) for version in versions}


@pytest.fixture
def table():
    return ModelTable()


def lines(table):
    return [(line.version, line.state, line.reason) for line in table.index("m")]


def test_versions_are_ascending_in_whatever_order_they_came(table):
    found = models(10, 2)
    table.swap("m", found)
    table.set_state("m", 1, State.LOADING)
    assert table.ready("m") == [found[2], found[10]]
    assert [version for version, _, _ in lines(table)] == ["1", "2", "10"]


def test_the_highest_ready_version_serves_requests_without_a_version(table):
    found = models(2, 10)
    assert table.swap("m", found) == []
    assert table.find("m") is found[10]
    assert table.find("m", 2) is found[2]
    assert table.ready("m") == [found[2], found[10]]


@pytest.mark.parametrize(
    ("name", "version", "kind", "text"),
    [
        ("x", -1, InvalidArgument, "Request for unknown model: 'x' is not found"),
        ("x", 1, InvalidArgument, "Request for unknown model: 'x' is not found"),
        ("m", 9, NotFound, "Request for unknown model: 'm' version 9 is not found"),
        ("m", 2, Unavailable, "Request for unknown model: 'm' version 2 is not at ready state"),
        ("broken", -1, NotFound, "Request for unknown model: 'broken' has no available versions"),
        (
            "broken",
            NO_VERSION,
            NotFound,
            "Request for unknown model: 'broken' version 0 is not found",
        ),
    ],
)
def test_lookups_of_unavailable_models_raise_tritons_errors(table, name, version, kind, text):
    table.swap("m", models(1))
    table.set_state("m", 2, State.LOADING)
    table.set_model_reason("broken", "why")
    with pytest.raises(kind) as refused:
        table.find(name, version)
    assert type(refused.value) is kind
    assert refused.value.message == text


def test_a_swap_returns_the_previous_versions_and_marks_them_unloading(table):
    first, second = models(1, 2), models(2, 3)
    table.swap("m", first)
    assert table.swap("m", second) == [first[1], first[2]]
    assert lines(table) == [("1", "UNLOADING", ""), ("2", "READY", ""), ("3", "READY", "")]
    table.finish_unload("m", 1, State.UNAVAILABLE, UNLOADED)
    table.finish_unload("m", 2, State.UNAVAILABLE, UNLOADED)
    assert lines(table) == [
        ("1", "UNAVAILABLE", "unloaded"),
        ("2", "READY", ""),
        ("3", "READY", ""),
    ]


def test_a_version_that_failed_is_forgotten_once_the_model_loads_without_it(table):
    table.set_state("m", 2, State.UNAVAILABLE, "broken")
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", "")]


def test_a_serving_version_keeps_serving_while_its_successor_loads_and_fails(table):
    (model,) = models(1).values()
    table.swap("m", {1: model})
    table.set_state("m", 1, State.LOADING)
    table.set_state("m", 1, State.UNAVAILABLE, "broken")
    table.set_model_reason("m", "broken")
    assert table.find("m") is model
    assert lines(table) == [("1", "READY", "")]


def test_a_model_that_failed_before_its_versions_were_known_has_a_reason_and_no_version(table):
    table.set_model_reason("m", "broken")
    table.set_model_reason("m", "broken twice")
    assert table.index("m") == [ModelIndex("m", "", "UNAVAILABLE", "broken twice")]
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", "")]


def test_an_unloaded_model_is_known_and_has_no_version(table):
    table.swap("m", models(1))
    table.swap("m", {})
    with pytest.raises(NotFound, match="has no available versions"):
        table.find("m")
    with pytest.raises(Unavailable, match="not at ready state"):
        table.find("m", 1)


def test_a_model_that_was_never_loaded_has_only_a_name(table):
    assert table.index("m") == [ModelIndex("m")]
    assert table.ready("m") == []


def test_everything_is_listed_by_name_and_version(table):
    for name in ("b", "a"):
        table.swap(name, {10: Model(name, 10), 9: Model(name, 9)})
    assert [(model.name, model.version) for model in table.all_ready()] == [
        ("a", 9),
        ("a", 10),
        ("b", 9),
        ("b", 10),
    ]
    assert [(name, version) for name, version, _ in table.records()] == [
        ("a", 9),
        ("a", 10),
        ("b", 9),
        ("b", 10),
    ]


def test_a_model_reason_can_be_cleared():
    table = ModelTable()
    table.set_model_reason("m", "broken")
    table.clear_placeholder("m")
    assert table.index("m") == [ModelIndex("m")]
    table.clear_placeholder("missing")


def test_clearing_the_model_reason_keeps_reasons_of_versions():
    table = ModelTable()
    table.set_state("m", 1, State.UNAVAILABLE, "broken")
    table.clear_placeholder("m")
    assert [line.reason for line in table.index("m")] == ["broken"]


def test_index_lines_have_the_name_that_clients_know():
    table = ModelTable()
    table.set_state("here::m", 1, State.LOADING)
    assert table.index("here::m", "m") == [ModelIndex("m", "1", "LOADING")]


LISTED = LazyListing(None, (1, 2))


def test_a_lazy_model_is_listed_and_not_found(table):
    table.add_lazy("m", "m", LISTED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]
    assert table.lazy_listing("m") is table.lazy_listing("m", 2) is LISTED
    assert table.lazy_listing("m", 3) is None
    assert table.lazy_listing("other") is None
    assert table.versions("m") == [1, 2]
    assert table.can_load("m")
    with pytest.raises(NotFound):
        table.find("m")


def test_a_failed_load_of_a_lazy_model_is_visible_until_it_is_listed_again(table):
    table.set_state("m", 1, State.LOADING)
    table.add_lazy("m", "m", LISTED, "broken")
    assert lines(table)[0] == ("1", "UNAVAILABLE", f"{LAZY}; the last load failed: broken")
    assert not table.can_load("m")
    table.add_lazy("m", "m", LISTED)
    assert table.can_load("m")


def test_an_unloaded_lazy_model_is_listed_as_before(table):
    table.add_lazy("m", "m", LISTED)
    table.swap("m", models(1))
    assert lines(table) == [("1", "READY", ""), ("2", "UNAVAILABLE", LAZY)]
    table.swap("m", {})
    table.finish_unload("m", 1, State.UNAVAILABLE, UNLOADED)
    assert lines(table) == [("1", "UNAVAILABLE", LAZY), ("2", "UNAVAILABLE", LAZY)]


def test_a_removed_lazy_model_leaves_no_trace(table):
    table.add_lazy("m", "m", LISTED)
    table.remove_lazy("m")
    assert table.lazy_listing("m") is None
    assert lines(table) == [("", "", "")]


def test_the_configuration_of_a_lazy_model_comes_from_its_files_or_starts_a_load(table):
    roused = []

    class LazyLoader:
        start_load = staticmethod(roused.append)

    table.lazy_loader = LazyLoader()
    table.add_lazy("m", "m", LazyListing("of its files", (1,)))
    assert table.config("m") == "of its files"
    with pytest.raises(NotFound):
        table.config("m", 2)
    table.add_lazy("m", "m", LISTED)
    with pytest.raises(Unavailable, match="being loaded") as refused:
        table.config("m")
    assert (refused.value.retry_after, roused) == ("1", ["m"])


def test_waiting_requests_get_the_models_before_these_can_be_found(table):
    seen = []

    class LazyLoader:
        @staticmethod
        @contextmanager
        def handover(key, found):
            seen.append((key, table.ready("m")))
            yield
            seen.append((key, table.ready("m")))

    table.lazy_loader = LazyLoader()
    found = models(1)
    table.swap("m", found)
    table.swap("m", {})
    assert seen == [("m", []), ("m", [found[1]])]


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
            for call in (
                lambda name: number(server, name),
                server.engine.model_metadata,
                server.engine.model_config,
            ):
                error = error_of(call, name)
                assert (type(error), error.message) == (InvalidArgument, ambiguous(name))
            assert (
                error_of(server.engine.statistics, name).message
                == f"requested model '{name}' is not available"
            )


def test_ensembles_find_members_of_their_own_repository_first(served, number):
    with served(mode="none") as server:
        assert [number(server, name) for name in ("over_a", "over_b", "across")] == [1, 2, 20]


def test_their_configuration_says_where_the_members_were_found(served, model_repository, other):
    with served(mode="none") as server:
        found = {
            name: server.engine.model_config(name).ensemble_scheduling.step[0].model_namespace
            for name in ("over_a", "over_b", "across")
        }
    assert found == {
        "over_a": str(model_repository.path),
        "over_b": str(other.path),
        "across": str(other.path),
    }


def test_the_index_lists_all_of_them_repository_by_repository(served, model_repository, other):
    with served(mode="none") as server:
        names = [name for name, _, state, _ in index(server) if state == "READY"]
    first, second = ["a", "across", "m", "over", "over_a"], ["b", "m", "over", "over_b"]
    assert names == (
        first + second if str(model_repository.path) < str(other.path) else second + first
    )


def test_statistics_and_gauges_are_kept_apart(served, model_repository, other, recorder):
    with served(mode="none") as server:
        recorder.wait(ask(server.engine, recorder, "over_b", [0]))
        counted = {
            one.namespace: one.inference_count
            for one in server.engine.statistics()
            if one.name == "m"
        }
        gauges = server.engine.gauges()
        assert (f"{other.path}::m", "1") in gauges
        assert (f"{model_repository.path}::m", "1") in gauges
    assert counted == {str(model_repository.path): 0, str(other.path): 1}


def test_loads_and_unloads_apply_to_all_models_of_the_name(served, number, ambiguous):
    with served() as server:
        unknown = error_of(number, server, "m")
        assert (type(unknown), unknown.message) == (
            InvalidArgument,
            "Request for unknown model: 'm' is not found",
        )
        server.engine.load_model("over_a")
        assert error_of(number, server, "m").message == ambiguous("m")
        assert number(server, "over_a") == 1
        server.engine.unload_model("m")
        error = error_of(number, server, "m")
        assert (type(error), error.message) == (
            NotFound,
            "Identifier of model 'm' is not found in global map",
        )
        server.engine.load_model("m")
        assert number(server, "over_a") == 1


def test_an_error_names_the_model_with_its_namespace(served, model_repository):
    write_ensemble(model_repository, "wrong", "m", version=7)
    here = model_repository.path
    with served() as server:
        assert error_of(server.engine.load_model, "wrong").message == (
            f"load failed for model '{here}::wrong': ensemble '{here}::wrong' depends on '{here}::m' whose required version 7 is not loaded.\n"
        )


def test_members_are_resolved_again_when_models_with_their_name_change(
    served, model_repository, number, ambiguous
):
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
    assert [str(repository.path) in message for repository in (model_repository, other)] == [
        True,
        True,
    ]


def test_without_namespaces_the_same_name_in_both_is_refused(
    served, serve, model_repository, other
):
    both = [{"url": str(model_repository.path)}, {"url": str(other.path)}]
    with serve(PLUGIN, repositories=both) as server:
        text = "failed to load 'm', failed to poll from model repository: model appears in two or more repositories"
        assert error_of(server.engine.load_model, "m").message == text
