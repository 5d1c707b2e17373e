from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tritonpy import config_to_dict
from tritonpy.errors import InvalidArgument, TritonError
from tritonpy.testing import Witness

from ..toys.serving import ask
from .staff import ISOLATED, Watched, answers, counts, groups, staffed, told, write
from .teller import error_of, index

IN_PROCESSES = pytest.mark.parametrize("where", ["", ISOLATED], ids=["threads", "processes"])


@pytest.fixture(autouse=True)
def _short_grace(monkeypatch):
    monkeypatch.setattr("tritonpy.runners.instances.GRACE_S", 0.01)
    Watched.begin()


def model_of(server):
    return server.engine._table.find("m", 1)


def reload(server, repository, config):
    write(repository, config)
    server.engine.load_model("m")


@IN_PROCESSES
def test_more_and_fewer_instances_while_those_that_stay_go_on(model_repository, where):
    write(model_repository, groups("count: 1", more=where))
    witness = Witness()
    with staffed(model_repository) as server:
        ((zero, one, process),) = answers(server, witness)
        before = model_of(server)
        reload(server, model_repository, groups("count: 3", more=where))
        assert counts(server) == [3]
        found = {number: (index, process) for index, number, process in answers(server, witness, 9) if index == zero}
        assert model_of(server) is before
        assert (zero, one) == (0, 1)
        assert all(each == (0, process) for each in found.values())
        reload(server, model_repository, groups("count: 1", more=where))
        ((index, number, same),) = answers(server, witness)
        assert (index, same) == (0, process)
        assert number > max(found, default=1)


@IN_PROCESSES
def test_groups_in_another_order_and_with_other_names_are_the_same_instances(model_repository, where):
    write(model_repository, groups("count: 1", 'count: 1 host_policy: "p"', more=where))
    witness = Witness()
    with staffed(model_repository) as server:
        runner = model_of(server).runner
        before = dict(runner._instances)
        reload(
            server, model_repository, groups('name: "b" count: 1 host_policy: "p"', 'name: "a" count: 1', more=where)
        )
        assert runner._instances == before
        assert [group.name for group in server.engine.model_config("m").instance_group] == ["b", "a"]
        answers(server, witness)


@IN_PROCESSES
def test_a_new_instance_that_fails_leaves_everything_as_it_was_and_says_why(model_repository, where):
    write(model_repository, groups("count: 1", more=where))
    witness = Witness()
    with staffed(model_repository) as server:
        before = dict(model_of(server).runner._instances)
        write(model_repository, groups("count: 2", 'name: "broken" count: 1', more=where))
        error = error_of(server.engine.load_model, "m")
        assert type(error) is InvalidArgument
        reason = "Internal: ValueError: nobody wants this place"
        assert error.message == f"load failed for model 'm': version 1 is at READY state: {reason};\n"
        assert index(server) == [("m", "1", "READY", reason)]
        assert dict(model_of(server).runner._instances) == before
        assert counts(server) == [1]
        assert server.engine.is_ready()
        answers(server, witness)
        reload(server, model_repository, groups("count: 2", more=where))
        assert index(server) == [("m", "1", "READY", "")]


@IN_PROCESSES
def test_no_request_fails_while_instances_come_and_go(model_repository, where):
    write(model_repository, groups("count: 2", more=where))
    over = threading.Event()

    def client(server):
        witness, served = Witness(), 0
        while not over.is_set():
            requests = [ask(server.engine, witness, "m", [number]) for number in range(4)]
            for request in requests:
                told(witness, request)
            witness.check(*requests)
            served += 4
        return served

    with staffed(model_repository) as server, ThreadPoolExecutor(3) as pool:
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


def test_an_instance_that_goes_finishes_what_it_executes(model_repository):
    write(model_repository, groups('name: "a" count: 1'))
    witness = Witness()
    with staffed(model_repository, Watched) as server:
        Watched.gate.clear()
        running = ask(server.engine, witness, "m", [1])
        Watched.wait(lambda: Watched.inside == 1)
        reload(server, model_repository, groups('name: "b" count: 1 host_policy: "other"'))
        assert sorted(Watched.open) == ["a_0", "b_0"]
        waiting = ask(server.engine, witness, "m", [1])
        Watched.wait(lambda: Watched.inside == 2)  # the new one takes what comes now
        Watched.gate.set()
        assert told(witness, running)[0] == 0
        assert told(witness, waiting)[0] == 1
        Watched.wait(lambda: Watched.open == ["b_0"])


def test_requests_are_served_while_a_new_instance_is_built(model_repository):
    write(model_repository, groups("count: 1"))
    witness = Witness()
    with staffed(model_repository, Watched) as server, ThreadPoolExecutor(1) as pool:
        Watched.birth.clear()
        update = pool.submit(reload, server, model_repository, groups("count: 2"))
        try:
            assert answers(server, witness, 3)
            assert counts(server) == [1]
            assert not update.done()
        finally:
            Watched.birth.set()
        update.result()
        assert counts(server) == [2]


def test_two_updates_at_once_come_one_after_the_other(model_repository):
    write(model_repository, groups("count: 1"))
    with staffed(model_repository, Watched) as server, ThreadPoolExecutor(2) as pool:
        asked = config_to_dict(server.engine.model_config("m"))

        def update(count):
            config = asked | {"instance_group": [{"kind": "KIND_CPU", "count": count}]}
            server.engine.load_model("m", json.dumps(config))

        for _ in range(5):
            list(pool.map(update, (2, 4)))
            (count,) = counts(server)
            assert len(model_of(server).runner._instances) == count
            Watched.wait(lambda count=count: len(Watched.open) == count)


def test_an_unload_during_an_update_ends_all_of_them(model_repository):
    write(model_repository, groups("count: 1"))
    with staffed(model_repository, Watched) as server, ThreadPoolExecutor(2) as pool:
        Watched.birth.clear()
        update = pool.submit(reload, server, model_repository, groups("count: 3"))
        Watched.wait(lambda: Watched.begun == 3)
        unload = pool.submit(server.engine.unload_model, "m")
        unload.result()
        assert "no version is available" in str(update.exception())
        Watched.birth.set()
        Watched.wait(lambda: Watched.open == [])
        with pytest.raises(TritonError):
            server.engine.model_config("m")


def test_a_server_that_stops_during_an_update_ends_all_of_them(model_repository):
    write(model_repository, groups("count: 1"))
    with ThreadPoolExecutor(1) as pool:
        with staffed(model_repository, Watched) as server:
            Watched.birth.clear()
            update = pool.submit(reload, server, model_repository, groups("count: 2"))
            Watched.wait(lambda: Watched.begun == 2)
            server.server._repository.stop_loading()  # as a draining server does first
            Watched.birth.set()
            assert "Server exiting" in str(update.exception())
            assert counts(server) == [1]
        Watched.wait(lambda: Watched.open == [])


def test_poll_mode_follows_an_edited_configuration(model_repository):
    write(model_repository, groups("count: 1"))
    with staffed(model_repository, Watched, control={"mode": "poll", "interval_s": 0.02}) as server:
        before = model_of(server)
        write(model_repository, groups("count: 3"))
        Watched.wait(lambda: len(Watched.open) == 3)
        write(model_repository, groups("count: 2"))
        Watched.wait(lambda: len(Watched.open) == 2)
        assert model_of(server) is before


def test_a_configuration_that_was_asked_back_from_the_server_is_the_same_model(model_repository):
    write(model_repository, groups("count: 1"))
    with staffed(model_repository) as server:
        before = model_of(server)
        config = config_to_dict(server.engine.model_config("m"))
        config["instance_group"][0]["count"] += 1
        server.engine.load_model("m", json.dumps(config))
        assert model_of(server) is before
        assert counts(server) == [2]


@pytest.mark.parametrize(
    "change",
    [
        lambda repository: write(repository, groups("count: 2", more='metric_tags { key: "a" value: "b" }')),
        lambda repository: repository.add("m", groups("count: 2"), versions={1: {"weights": "new"}}),
        lambda repository: repository.add("m", groups("count: 2"), files={"labels.txt": "new"}),
        lambda repository: repository.add("m", groups("count: 2"), versions={2: {}}),
    ],
    ids=["another key", "a file of the version", "a file of the model", "another version"],
)
def test_whatever_else_changes_is_a_reload(model_repository, change):
    write(model_repository, groups("count: 1"))
    with staffed(model_repository) as server:
        before = model_of(server)
        change(model_repository)
        server.engine.load_model("m")
        assert server.engine._table.find("m") is not before
        assert counts(server) == [2]


def test_the_other_versions_of_a_model_change_with_it_or_none_does(model_repository):
    every = "version_policy { all {} }"
    model_repository.add("m", versions={1: {}, 2: {}})
    write(model_repository, groups("count: 1", more=every))
    with staffed(model_repository, Watched) as server:
        reload(server, model_repository, groups("count: 2", more=every))
        assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [2, 2]
        write(model_repository, groups("count: 3", 'name: "broken in 2"', more=every))
        assert "version 2 is at READY state" in error_of(server.engine.load_model, "m").message
        assert [len(model.runner._instances) for model in server.engine._table.ready("m")] == [2, 2]
        Watched.wait(lambda: len(Watched.open) == 4)


def test_the_rate_limiter_learns_of_the_change_and_may_refuse_it(model_repository):
    def needs(count):
        return groups(f'count: 2 rate_limiter {{ resources {{ name: "R" count: {count} }} }}')

    write(model_repository, needs(1))
    limits = {"mode": "execution_count", "resources": {"R": 2}}
    witness = Witness()
    with staffed(model_repository, rate_limit=limits) as server:
        write(model_repository, needs(3))
        assert 'Resource count for "R" is limited to 2' in error_of(server.engine.load_model, "m").message
        answers(server, witness, 3)
        reload(server, model_repository, needs(2))
        assert {index for index, _, _ in answers(server, witness, 8)} <= {4, 5}


def test_a_passive_instance_is_made_and_gets_nothing(model_repository):
    write(model_repository, groups("count: 1", "count: 2 passive: true"))
    witness = Witness()
    with staffed(model_repository, Watched) as server:
        assert len(Watched.open) == 3
        assert {index for index, _, _ in answers(server, witness, 6)} == {0}
        reload(server, model_repository, groups("count: 1"))
        Watched.wait(lambda: len(Watched.open) == 1)
    assert Watched.open == []
