"""Concurrent loads, unloads and requests of ensembles and their members."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from tritonpy_testing.recording_sink import WAIT_S
from tritonpy_types.errors import TritonError

from ..toys.serving import ask, numbers
from .ensembles import PLUGIN, write_ensemble
from .version_backend import index, write

ENSEMBLES = {"e": ("m", "n"), "f": ("e", "n"), "g": ("f", "m"), "h": ("n",)}
CYCLE = {"c": ("d",), "d": ("c",)}
NAMES = ("m", "n", *ENSEMBLES)
THREADS = 4
ROUNDS = 40


@pytest.fixture
def ensembles(serve, model_repository):
    for number, name in enumerate(("m", "n"), 1):
        write(model_repository, name, number)
    for name, members in {**ENSEMBLES, **CYCLE}.items():
        write_ensemble(model_repository, name, *members)
    return lambda: serve(PLUGIN)


def run_concurrently(*tasks: Callable[[], None]) -> None:
    """Run the tasks on threads; fail if one raises or does not end."""
    failures: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if failures:
        raise failures[0]


def states(server):
    return {name: state for name, _, state, _ in index(server) if name in NAMES}


class TestLoads:
    def test_ensembles_that_share_members_load_at_the_same_time(self, ensembles, number, event_log):
        with ensembles() as server:
            run_concurrently(
                *(
                    lambda name=name: server.engine.load_model(name)
                    for name in (*ENSEMBLES, *ENSEMBLES)
                )
            )
            assert states(server) == dict.fromkeys(NAMES, "READY")
            assert [number(server, name) for name in ENSEMBLES] == [2, 2, 1, 2]
            assert len(event_log.events("load")) == 2

    def test_a_cycle_loaded_from_both_ends_is_rejected_on_both(self, ensembles):
        refused = []

        def load(name):
            try:
                server.engine.load_model(name)
            except TritonError as error:
                refused.append(error.message)

        with ensembles() as server:
            run_concurrently(*(lambda name=name: load(name) for name in ("c", "d") * 2))
            assert len(refused) == 4
            # for the first one, the other may not be known yet
            assert {text.partition("': ")[2].partition(" ")[0] for text in refused} <= {
                "circular",
                "ensemble",
            }

    @pytest.mark.parametrize("seed", range(3))
    def test_random_concurrent_loads_and_unloads_end_in_a_consistent_state(
        self, ensembles, model_repository, number, seed
    ):
        writing = threading.Lock()

        def run_rounds(random_):
            for _ in range(ROUNDS):
                name = random_.choice((*NAMES, *CYCLE))
                act = random_.choice(("load", "unload", "dependents", "write"))
                try:
                    if act == "load":
                        server.engine.load_model(name)
                    elif act == "write" and name in "mn":
                        with writing:
                            write(
                                model_repository, name, random_.choice((1, 2, "cannot be loaded"))
                            )
                        server.engine.load_model(name)
                    else:
                        server.engine.unload_model(name, unload_dependents=act == "dependents")
                except TritonError:
                    pass

        with ensembles() as server:
            run_concurrently(
                *(
                    lambda one=one: run_rounds(random.Random(f"{seed} {one}"))
                    for one in range(THREADS)
                )
            )
            for name, value in (("m", 1), ("n", 2)):
                write(model_repository, name, value)
            for name in NAMES:
                server.engine.load_model(name)
            assert states(server) == dict.fromkeys(NAMES, "READY")
            assert [number(server, name) for name in ENSEMBLES] == [2, 2, 1, 2]
            for name in ("m", "n"):
                server.engine.unload_model(name)
            assert server._repository._drainer.wait(WAIT_S)
            assert states(server) == dict.fromkeys(NAMES, "UNAVAILABLE")


class TestUnderLoad:
    def test_no_request_fails_while_a_member_is_reloaded(
        self, ensembles, model_repository, recorder
    ):
        done = threading.Event()
        sent = []

        def requests():
            while not done.is_set():
                sent.append(ask(server.engine, recorder, "g", [0]))
                recorder.wait(sent[-1])

        def reloads():
            try:
                for value in range(10, 25):
                    write(model_repository, "m", value)
                    server.engine.load_model("m")
            finally:
                done.set()

        with ensembles() as server:
            server.engine.load_model("g")
            run_concurrently(requests, requests, reloads)
            responses = recorder.wait(*sent)
        assert {value for each in responses for ((value,),) in [numbers(each)]} <= {
            1,
            *range(10, 25),
        }
        recorder.check(*sent)

    def test_requests_are_completed_or_rejected_while_a_member_is_unloaded(
        self, ensembles, recorder
    ):
        refused = set()
        sent = []
        started, removed = threading.Event(), threading.Event()

        def requests():
            while not removed.is_set():
                try:
                    request = ask(server.engine, recorder, "g", [0])
                except TritonError as error:
                    refused.add(error.message)
                    removed.set()
                else:
                    sent.append(request)
                    started.set()

        def unload():
            assert started.wait(WAIT_S)
            server.engine.unload_model("n")

        with ensembles() as server:
            server.engine.load_model("g")
            run_concurrently(requests, requests, unload)
            responses = recorder.wait(*sent)
        assert {numbers(each)[0][0] for each in responses} == {1}
        assert refused == {"Request for unknown model: 'g' has no available versions"}
        recorder.check(*sent)
