from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy.config import config_to_dict
from tritonpy_testing import RecordingSink
from tritonpy_types.errors import InvalidArgument, TritonError

from ..toys.serving import ask
from .instance_backends import (
    ISOLATED,
    MonitoredBackend,
    groups,
    infer_many,
    infer_result,
    instance_counts,
    serve_counting,
    write,
)
from .version_backend import error_of, index

IN_PROCESSES = pytest.mark.parametrize("where", ["", ISOLATED], ids=["threads", "processes"])


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch):
    monkeypatch.setattr("tritonpy.runners.instances.GRACE_S", 0.01)
    MonitoredBackend.begin()


def model_of(server):
    return server.engine._table.find("m", 1)


def reload(server, repository, config):
    write(repository, config)
    server.engine.load_model("m")


@IN_PROCESSES
def test_kept_instances_survive_changes_of_the_count(model_repository, where):
    write(model_repository, groups("count: 1", more=where))
    recorder = RecordingSink()
    with serve_counting(model_repository) as server:
        ((zero, one, process),) = infer_many(server, recorder)
        before = model_of(server)
        reload(server, model_repository, groups("count: 3", more=where))
        assert instance_counts(server) == [3]
        found = {
            number: (index, process)
            for index, number, process in infer_many(server, recorder, 9)
            if index == zero
        }
        assert model_of(server) is before
        assert (zero, one) == (0, 1)
        assert all(each == (0, process) for each in found.values())
        reload(server, model_repository, groups("count: 1", more=where))
        ((index, number, same),) = infer_many(server, recorder)
        assert (index, same) == (0, process)
        assert number > max(found, default=1)


@IN_PROCESSES
def test_groups_in_another_order_and_with_other_names_are_the_same_instances(
    model_repository, where
):
    write(model_repository, groups("count: 1", 'count: 1 host_policy: "p"', more=where))
    recorder = RecordingSink()
    with serve_counting(model_repository) as server:
        runner = model_of(server).runner
        before = dict(runner._instances)
        reload(
            server,
            model_repository,
            groups('name: "b" count: 1 host_policy: "p"', 'name: "a" count: 1', more=where),
        )
        assert runner._instances == before
        assert [group.name for group in server.engine.model_config("m").instance_group] == [
            "b",
            "a",
        ]
        infer_many(server, recorder)


@IN_PROCESSES
def test_a_new_instance_that_fails_leaves_everything_as_it_was_and_says_why(
    model_repository, where
):
    write(model_repository, groups("count: 1", more=where))
    recorder = RecordingSink()
    with serve_counting(model_repository) as server:
        before = dict(model_of(server).runner._instances)
        write(model_repository, groups("count: 2", 'name: "broken" count: 1', more=where))
        error = error_of(server.engine.load_model, "m")
        assert type(error) is InvalidArgument
        reason = "Internal: ValueError: this group is broken"
        assert (
            error.message == f"load failed for model 'm': version 1 is at READY state: {reason};\n"
        )
        assert index(server) == [("m", "1", "READY", reason)]
        assert dict(model_of(server).runner._instances) == before
        assert instance_counts(server) == [1]
        assert server.engine.is_ready()
        infer_many(server, recorder)
        reload(server, model_repository, groups("count: 2", more=where))
        assert index(server) == [("m", "1", "READY", "")]


@IN_PROCESSES
def test_no_request_fails_while_instances_come_and_go(model_repository, where):
    write(model_repository, groups("count: 2", more=where))
    over = threading.Event()

    def client(server):
        recorder, served = RecordingSink(), 0
        while not over.is_set():
            requests = [ask(server.engine, recorder, "m", [number]) for number in range(4)]
            for request in requests:
                infer_result(recorder, request)
            recorder.check(*requests)
            served += 4
        return served

    with serve_counting(model_repository) as server, ThreadPoolExecutor(3) as pool:
        clients = [pool.submit(client, server) for _ in range(3)]
        try:
            for count in (4, 1, 3, 2, 1, 4):
                reload(server, model_repository, groups(f"count: {count}", more=where))
                assert len(model_of(server).runner._instances) == count
        finally:
            over.set()
        served = sum(client.result() for client in clients)
        (statistics,) = server.engine.statistics("m")
        assert statistics.inference_count == served


def test_a_removed_instance_finishes_its_execution(model_repository):
    write(model_repository, groups('name: "a" count: 1'))
    recorder = RecordingSink()
    with serve_counting(model_repository, MonitoredBackend) as server:
        MonitoredBackend.gate.clear()
        running = ask(server.engine, recorder, "m", [1])
        MonitoredBackend.wait(lambda: MonitoredBackend.inside == 1)
        reload(server, model_repository, groups('name: "b" count: 1 host_policy: "other"'))
        assert sorted(MonitoredBackend.open) == ["a_0", "b_0"]
        waiting = ask(server.engine, recorder, "m", [1])
        MonitoredBackend.wait(
            lambda: MonitoredBackend.inside == 2
        )  # the new instance takes new requests
        MonitoredBackend.gate.set()
        assert infer_result(recorder, running)[0] == 0
        assert infer_result(recorder, waiting)[0] == 1
        MonitoredBackend.wait(lambda: MonitoredBackend.open == ["b_0"])


def test_requests_are_served_while_a_new_instance_is_built(model_repository):
    write(model_repository, groups("count: 1"))
    recorder = RecordingSink()
    with (
        serve_counting(model_repository, MonitoredBackend) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        MonitoredBackend.creation_gate.clear()
        update = pool.submit(reload, server, model_repository, groups("count: 2"))
        try:
            assert infer_many(server, recorder, 3)
            assert instance_counts(server) == [1]
            assert not update.done()
        finally:
            MonitoredBackend.creation_gate.set()
        update.result()
        assert instance_counts(server) == [2]


def test_concurrent_updates_are_serialized(model_repository):
    write(model_repository, groups("count: 1"))
    with (
        serve_counting(model_repository, MonitoredBackend) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        server_config = config_to_dict(server.engine.model_config("m"))

        def update(count):
            config = server_config | {"instance_group": [{"kind": "KIND_CPU", "count": count}]}
            server.engine.load_model("m", json.dumps(config))

        for _ in range(5):
            list(pool.map(update, (2, 4)))
            (count,) = instance_counts(server)
            assert len(model_of(server).runner._instances) == count
            MonitoredBackend.wait(lambda count=count: len(MonitoredBackend.open) == count)


def test_an_unload_during_an_update_closes_all_instances(model_repository):
    write(model_repository, groups("count: 1"))
    with (
        serve_counting(model_repository, MonitoredBackend) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        MonitoredBackend.creation_gate.clear()
        update = pool.submit(reload, server, model_repository, groups("count: 3"))
        MonitoredBackend.wait(lambda: MonitoredBackend.created == 3)
        unload = pool.submit(server.engine.unload_model, "m")
        unload.result()
        assert "no version is available" in str(update.exception())
        MonitoredBackend.creation_gate.set()
        MonitoredBackend.wait(lambda: MonitoredBackend.open == [])
        with pytest.raises(TritonError):
            server.engine.model_config("m")


def test_a_server_stop_during_an_update_closes_all_instances(model_repository):
    write(model_repository, groups("count: 1"))
    with ThreadPoolExecutor(1) as pool:
        with serve_counting(model_repository, MonitoredBackend) as server:
            MonitoredBackend.creation_gate.clear()
            update = pool.submit(reload, server, model_repository, groups("count: 2"))
            MonitoredBackend.wait(lambda: MonitoredBackend.created == 2)
            server.server._repository.stop_loading()  # the first step of draining a server
            MonitoredBackend.creation_gate.set()
            assert "Server exiting" in str(update.exception())
            assert instance_counts(server) == [1]
        MonitoredBackend.wait(lambda: MonitoredBackend.open == [])


def test_poll_mode_follows_an_edited_configuration(model_repository):
    write(model_repository, groups("count: 1"))
    with serve_counting(
        model_repository, MonitoredBackend, control={"mode": "poll", "interval_s": 0.02}
    ) as server:
        before = model_of(server)
        write(model_repository, groups("count: 3"))
        MonitoredBackend.wait(lambda: len(MonitoredBackend.open) == 3)
        write(model_repository, groups("count: 2"))
        MonitoredBackend.wait(lambda: len(MonitoredBackend.open) == 2)
        assert model_of(server) is before


def test_a_configuration_read_back_from_the_server_causes_no_reload(model_repository):
    write(model_repository, groups("count: 1"))
    with serve_counting(model_repository) as server:
        before = model_of(server)
        config = config_to_dict(server.engine.model_config("m"))
        config["instance_group"][0]["count"] += 1
        server.engine.load_model("m", json.dumps(config))
        assert model_of(server) is before
        assert instance_counts(server) == [2]


@pytest.mark.parametrize(
    "change",
    [
        lambda repository: write(
            repository, groups("count: 2", more='metric_tags { key: "a" value: "b" }')
        ),
        lambda repository: repository.add(
            "m", groups("count: 2"), versions={1: {"weights": "new"}}
        ),
        lambda repository: repository.add("m", groups("count: 2"), files={"labels.txt": "new"}),
        lambda repository: repository.add("m", groups("count: 2"), versions={2: {}}),
    ],
    ids=["another key", "a file of the version", "a file of the model", "another version"],
)
def test_any_other_change_is_a_reload(model_repository, change):
    write(model_repository, groups("count: 1"))
    with serve_counting(model_repository) as server:
        before = model_of(server)
        change(model_repository)
        server.engine.load_model("m")
        assert server.engine._table.find("m") is not before
        assert instance_counts(server) == [2]


def test_all_versions_of_a_model_are_updated_or_none(model_repository):
    every = "version_policy { all {} }"
    model_repository.add("m", versions={1: {}, 2: {}})
    write(model_repository, groups("count: 1", more=every))
    with serve_counting(model_repository, MonitoredBackend) as server:
        reload(server, model_repository, groups("count: 2", more=every))
        assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [2, 2]
        write(model_repository, groups("count: 3", 'name: "broken in 2"', more=every))
        assert "version 2 is at READY state" in error_of(server.engine.load_model, "m").message
        assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [2, 2]
        MonitoredBackend.wait(lambda: len(MonitoredBackend.open) == 4)


def test_the_rate_limiter_may_reject_an_update(model_repository):
    def needs(count):
        return groups(f'count: 2 rate_limiter {{ resources {{ name: "R" count: {count} }} }}')

    write(model_repository, needs(1))
    limits = {"mode": "execution_count", "resources": {"R": 2}}
    recorder = RecordingSink()
    with serve_counting(model_repository, rate_limit=limits) as server:
        write(model_repository, needs(3))
        assert (
            'Resource count for "R" is limited to 2'
            in error_of(server.engine.load_model, "m").message
        )
        infer_many(server, recorder, 3)
        reload(server, model_repository, needs(2))
        assert {index for index, _, _ in infer_many(server, recorder, 8)} <= {4, 5}


def test_a_passive_instance_gets_no_requests(model_repository):
    write(model_repository, groups("count: 1", "count: 2 passive: true"))
    recorder = RecordingSink()
    with serve_counting(model_repository, MonitoredBackend) as server:
        assert len(MonitoredBackend.open) == 3
        assert {index for index, _, _ in infer_many(server, recorder, 6)} == {0}
        reload(server, model_repository, groups("count: 1"))
        MonitoredBackend.wait(lambda: len(MonitoredBackend.open) == 1)
    assert MonitoredBackend.open == []
