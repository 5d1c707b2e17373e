"""What happens to versions that serve no longer: they finish what they have, off everybody's way."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

from tritonpy.api.repo_agent import AgentAction
from tritonpy.interpreter import return_free_memory
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.sweeping import Sweeping
from tritonpy.repository.table import UNLOADED, ModelTable, State

log = logging.getLogger("tritonpy.repository")

# How long an execution that no time-out can interrupt is waited for, when all that waited was answered.
GRACE_S = 1.0
THREADS = 16  # that close the idle models of one retirement


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """Versions of one model that are to close, and what they were loaded from. `final`: nothing is loaded from that any more."""

    name: str
    models: Sequence[LoadedModel]
    prepared: Prepared | None = None
    final: bool = True


class Retiring:
    """Closes models on threads of its own.

    A model with open requests has one for itself: a request that takes an hour holds up its own model alone, and the members of its ensemble.
    Those that are idle are closed by `THREADS` threads, ensembles before their members.
    """

    def __init__(self, table: ModelTable, unloaded: Callable[[LoadedModel], None]) -> None:
        self._table = table
        self._unloaded = unloaded
        self._sweeping = Sweeping()
        self._threads: set[threading.Thread] = set()
        self._live: set[Departure] = set()
        self._sources: Counter[int] = Counter()  # departures that have not closed yet, by what they were loaded from
        self._ensembles: dict[
            LoadedModel, list[LoadedModel]
        ] = {}  # those that have not closed yet, by each of their members
        self._guard = threading.Lock()

    def retire(self, *departures: Departure) -> None:
        """Close the models and then free what they were loaded from; returns at once.

        The members of an ensemble close after it, if they are retired after it or together with it.
        """
        threads = []
        with self._guard:
            for departure in departures:
                self._enter(departure)
            for queue in self._queues(departures):
                name = f"unload {queue[0].name}" if len(queue) == 1 else "unload"
                threads.append(threading.Thread(target=self._run, args=(queue,), name=name, daemon=True))
            self._threads.update(threads)
            for (
                thread
            ) in threads:  # each begins when all of them are known, and whoever waits for them finds them started
                thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for all retirements; after `timeout_s` the requests that still wait are answered with an error and False is returned.

        What an instance executes then is waited for a moment longer, and left alone.
        """
        if self._join(timeout_s):
            return True
        with self._guard:
            late = [model for departure in self._live for model in departure.models]
        in_time = not any(model.open for model in late)
        for model in late:
            model.give_up()
        return self._join(GRACE_S) and in_time

    def close(self) -> None:
        """Let what still retires do so by itself, and collect nothing more."""
        self._sweeping.close()

    def _join(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._guard:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)

    def _enter(self, departure: Departure) -> None:
        prepared = departure.prepared
        if prepared is not None:
            self._sources[id(prepared)] += 1
            if departure.final:
                prepared.over = True
                prepared.leave()
        self._live.add(departure)
        for model in departure.models:
            for member in {*model.members.values()}:
                self._ensembles.setdefault(member, []).append(model)

    def _leave(self, departure: Departure) -> bool:
        """Record that the models of `departure` are closed; return whether what they were loaded from is to be freed."""
        with self._guard:
            self._live.discard(departure)
            for model in departure.models:
                for member in {*model.members.values()}:
                    self._ensembles[member].remove(model)
                    if not self._ensembles[member]:
                        del self._ensembles[member]
            prepared = departure.prepared
            if prepared is None:
                return False
            self._sources[id(prepared)] -= 1
            left = self._sources[id(prepared)]
            if not left:
                del self._sources[id(prepared)]
            return prepared.over and not left

    def _queues(self, departures: Sequence[Departure]) -> list[deque[Departure]]:
        """Return what each thread is to close: one after the other, from a queue that several of them may share."""
        queues, idle = [], []
        for departure in departures:
            models = [
                *departure.models,
                *(each for model in departure.models for each in self._ensembles.get(model, ())),
            ]
            if len(departures) <= THREADS or any(model.open for model in models):
                queues.append(deque([departure]))
            else:
                idle.append(departure)
        shared = deque(_ensembles_first(idle))
        return queues + [shared] * min(THREADS, len(shared))

    def _run(self, queue: deque[Departure]) -> None:
        try:
            while self._retire_next(queue):
                pass
        finally:
            with self._guard:
                self._threads.discard(threading.current_thread())

    def _retire_next(self, queue: deque[Departure]) -> bool:
        """Retire what is next in `queue`, if anything is."""
        try:
            departure = queue.popleft()
        except IndexError:
            return False
        name, prepared = departure.name, departure.prepared
        try:
            self._depart(departure)
        except Exception:
            log.exception("'%s' was not unloaded as it should be", name)
        last = self._leave(departure)
        del departure
        if prepared is not None and last:
            _release(name, prepared)
        if not queue:
            # Nobody refers to the models any more. They are full of cycles, and the collector, tuned for requests, would let them lie for long.
            self._sweeping.sweep()
            return_free_memory()
        if prepared is not None and prepared.account is not None:
            prepared.account.close() if last else prepared.account.departed()
        return True

    def _depart(self, departure: Departure) -> None:
        name = departure.name
        if departure.prepared is not None and departure.final:
            departure.prepared.agents.tell(AgentAction.UNLOAD)
        for model in departure.models:
            self._wait_for_ensembles(model)
            self._close(model)
            self._table.settle(name, model.version, State.UNAVAILABLE, UNLOADED)
            self._unloaded(model)
            log.info("successfully unloaded '%s' version %d", name, model.version)

    def _wait_for_ensembles(self, member: LoadedModel) -> None:
        """Wait until the retiring ensembles that stand on `member` have answered: what they still have to ask it, it answers."""
        with self._guard:
            ensembles = tuple(self._ensembles.get(member, ()))
        for ensemble in ensembles:
            ensemble.drained.wait()

    @staticmethod
    def _close(model: LoadedModel) -> None:
        try:
            model.close()
        except Exception:
            log.exception("version %d of '%s' failed to close", model.version, model.name)


def _ensembles_first(departures: Sequence[Departure]) -> list[Departure]:
    """Return `departures` in an order in which no model comes before an ensemble that stands on it."""
    departure_of = {model: departure for departure in departures for model in departure.models}
    before: dict[Departure, set[Departure]] = {departure: set() for departure in departures}
    for ensemble, departure in departure_of.items():
        for member in ensemble.members.values():
            if departure_of.get(member, departure) is not departure:
                before[departure_of[member]].add(departure)
    return list(TopologicalSorter(before).static_order())


def _release(name: str, prepared: Prepared) -> None:
    prepared.agents.tell(AgentAction.UNLOAD_COMPLETE)
    try:
        prepared.release()
    except Exception:
        log.exception("the files of '%s' were not released", name)
