"""What happens to versions that serve no longer: they finish what they have, off everybody's way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tritonpy.api.repo_agent import AgentAction
from tritonpy.interpreter import return_free_memory
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.prepared import Prepared
from tritonpy.repository.sweeping import Sweeping
from tritonpy.repository.table import UNLOADED, ModelTable, State

log = logging.getLogger("tritonpy.repository")

# How long an execution that no time-out can interrupt is waited for, when all that waited was answered.
GRACE_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """Versions of one model that are to close, and what they were loaded from. `final`: nothing is loaded from that any more."""

    name: str
    models: Sequence[LoadedModel]
    prepared: Prepared | None = None
    final: bool = True


class Retiring:
    """One thread per retirement: a request that takes an hour holds up its own model alone, and the members of its ensemble."""

    def __init__(self, table: ModelTable, unloaded: Callable[[LoadedModel], None]) -> None:
        self._table = table
        self._unloaded = unloaded
        self._sweeping = Sweeping()
        self._live: dict[threading.Thread, Departure] = {}
        self._guard = threading.Lock()

    def retire(self, *departures: Departure) -> None:
        """Close the models and then free what they were loaded from; returns at once.

        The members of an ensemble close after it, if they are retired after it or together with it.
        """
        threads = []
        with self._guard:
            for departure in departures:
                if departure.prepared is not None and departure.final:
                    departure.prepared.over = True
                    departure.prepared.leave()
                name = f"unload {departure.name}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._live[thread] = departure
                threads.append(thread)
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
            late = [model for departure in self._live.values() for model in departure.models]
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
            threads = list(self._live)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return not any(thread.is_alive() for thread in threads)

    def _run(self) -> None:
        thread = threading.current_thread()
        with self._guard:
            departure = self._live[thread]
        name, prepared = departure.name, departure.prepared
        try:
            self._depart(departure)
        except Exception:
            log.exception("'%s' was not unloaded as it should be", name)
        finally:
            with self._guard:
                self._live[thread] = departure = Departure(name, ())
                last = prepared is not None and prepared.over and not self._waits_for(prepared)
            if prepared is not None and last:
                _release(name, prepared)
            # Nobody refers to the models any more. They are full of cycles, and the collector, tuned for requests, would let them lie for long.
            self._sweeping.sweep()
            return_free_memory()
            if prepared is not None and prepared.account is not None:
                prepared.account.close() if last else prepared.account.departed()
            with self._guard:
                del self._live[thread]

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

    def _waits_for(self, prepared: Prepared) -> bool:
        """Say whether versions that were loaded from `prepared` have not closed yet."""
        return any(departure.prepared is prepared for departure in self._live.values())

    def _wait_for_ensembles(self, member: LoadedModel) -> None:
        """Wait until the retiring ensembles that stand on `member` have answered: what they still have to ask it, it answers."""
        with self._guard:
            models = [model for departure in self._live.values() for model in departure.models]
        for model in models:
            if member in model.members.values():
                model.drained.wait()

    @staticmethod
    def _close(model: LoadedModel) -> None:
        try:
            model.close()
        except Exception:
            log.exception("version %d of '%s' failed to close", model.version, model.name)


def _release(name: str, prepared: Prepared) -> None:
    prepared.agents.tell(AgentAction.UNLOAD_COMPLETE)
    try:
        prepared.release()
    except Exception:
        log.exception("the files of '%s' were not released", name)
