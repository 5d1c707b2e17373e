"""Ensembles and their members are loaded, unloaded and asked by several threads at the same time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from tritonpy.errors import TritonError
from tritonpy.testing.witness import PATIENCE_S

from ..toys.serving import ask, numbers
from .standing import PLUGIN, write_ensemble
from .teller import index, write

ENSEMBLES = {"e": ("m", "n"), "f": ("e", "n"), "g": ("f", "m"), "h": ("n",)}
CIRCLE = {"c": ("d",), "d": ("c",)}
NAMES = ("m", "n", *ENSEMBLES)
THREADS = 4
TURNS = 40


@pytest.fixture
def ensembles(serve, model_repository):
    for number, name in enumerate(("m", "n"), 1):
        write(model_repository, name, number)
    for name, members in {**ENSEMBLES, **CIRCLE}.items():
        write_ensemble(model_repository, name, *members)
    return lambda: serve(PLUGIN)


def at_once(*tasks: Callable[[], None]) -> None:
    """Run the tasks in threads; fail where one does not end, or raises."""
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
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    if failures:
        raise failures[0]


def states(server):
    return {name: state for name, _, state, _ in index(server) if name in NAMES}


class TestLoads:
    def test_ensembles_that_share_members_load_at_the_same_time(self, ensembles, number, book):
        with ensembles() as server:
            at_once(*(lambda name=name: server.engine.load_model(name) for name in (*ENSEMBLES, *ENSEMBLES)))
            assert states(server) == dict.fromkeys(NAMES, "READY")
            assert [number(server, name) for name in ENSEMBLES] == [2, 2, 1, 2]
            assert len(book.events("load")) == 2

    def test_a_circle_that_is_loaded_from_both_sides_is_refused_on_both(self, ensembles):
        refused = []

        def load(name):
            try:
                server.engine.load_model(name)
            except TritonError as error:
                refused.append(error.message)

        with ensembles() as server:
            at_once(*(lambda name=name: load(name) for name in ("c", "d") * 2))
            assert len(refused) == 4
            # whoever is first may find that the other has not been looked for yet
            assert {text.partition("': ")[2].partition(" ")[0] for text in refused} <= {"circular", "ensemble"}

    @pytest.mark.parametrize("seed", range(3))
    def test_whatever_is_loaded_and_unloaded_nobody_waits_for_ever_and_all_is_well_in_the_end(
        self, ensembles, model_repository, number, seed
    ):
        writing = threading.Lock()

        def turns(random_):
            for _ in range(TURNS):
                name = random_.choice((*NAMES, *CIRCLE))
                act = random_.choice(("load", "unload", "dependents", "write"))
                try:
                    if act == "load":
                        server.engine.load_model(name)
                    elif act == "write" and name in "mn":
                        with writing:
                            write(model_repository, name, random_.choice((1, 2, "cannot be loaded")))
                        server.engine.load_model(name)
                    else:
                        server.engine.unload_model(name, unload_dependents=act == "dependents")
                except TritonError:
                    pass

        with ensembles() as server:
            at_once(*(lambda one=one: turns(random.Random(f"{seed} {one}")) for one in range(THREADS)))
            for name, value in (("m", 1), ("n", 2)):
                write(model_repository, name, value)
            for name in NAMES:
                server.engine.load_model(name)
            assert states(server) == dict.fromkeys(NAMES, "READY")
            assert [number(server, name) for name in ENSEMBLES] == [2, 2, 1, 2]
            for name in ("m", "n"):
                server.engine.unload_model(name)
            assert server._repository._retiring.wait(PATIENCE_S)
            assert states(server) == dict.fromkeys(NAMES, "UNAVAILABLE")


class TestUnderLoad:
    def test_no_request_fails_while_a_member_is_loaded_anew(self, ensembles, model_repository, witness):
        done = threading.Event()
        sent = []

        def requests():
            while not done.is_set():
                sent.append(ask(server.engine, witness, "g", [0]))
                witness.wait(sent[-1])

        def reloads():
            try:
                for value in range(10, 25):
                    write(model_repository, "m", value)
                    server.engine.load_model("m")
            finally:
                done.set()

        with ensembles() as server:
            server.engine.load_model("g")
            at_once(requests, requests, reloads)
            answers = witness.wait(*sent)
        assert {value for each in answers for ((value,),) in [numbers(each)]} <= {1, *range(10, 25)}
        witness.check(*sent)

    def test_requests_are_answered_or_refused_in_tritons_words_while_a_member_is_unloaded(self, ensembles, witness):
        refused = set()
        sent = []
        begun, gone = threading.Event(), threading.Event()

        def requests():
            while not gone.is_set():
                try:
                    request = ask(server.engine, witness, "g", [0])
                except TritonError as error:
                    refused.add(error.message)
                    gone.set()
                else:
                    sent.append(request)
                    begun.set()

        def unload():
            assert begun.wait(PATIENCE_S)
            server.engine.unload_model("n")

        with ensembles() as server:
            server.engine.load_model("g")
            at_once(requests, requests, unload)
            answers = witness.wait(*sent)
        assert {numbers(each)[0][0] for each in answers} == {1}
        assert refused == {"Request for unknown model: 'g' has no available versions"}
        witness.check(*sent)
