"""What happens to versions that serve no longer: they finish what they have, off everybody's way."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from tritonpy.api.repo_agent import AgentAction
from tritonpy.model.loaded import LoadedModel
from tritonpy.repository.loader import Prepared
from tritonpy.repository.table import UNLOADED, ModelTable, State

log = logging.getLogger("tritonpy.repository")


class Retiring:
    """One thread per retirement: a request that takes an hour holds up its own version alone."""

    def __init__(self, table: ModelTable, unloaded: Callable[[LoadedModel], None]) -> None:
        self._table = table
        self._unloaded = unloaded
        self._live: dict[threading.Thread, Sequence[LoadedModel]] = {}
        self._guard = threading.Lock()

    def retire(self, name: str, models: Sequence[LoadedModel], prepared: Prepared) -> None:
        """Close `models` and then free what they were loaded from; returns at once."""
        thread = threading.Thread(target=self._run, args=(name, models, prepared), name=f"unload {name}", daemon=True)
        with self._guard:
            self._live[thread] = models
        thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for all retirements; after `timeout_s` the requests that still wait are answered with an error and False is returned."""
        deadline = time.monotonic() + timeout_s
        with self._guard:
            live = dict(self._live)
        for thread in live:
            thread.join(max(deadline - time.monotonic(), 0))
        late = [thread for thread in live if thread.is_alive()]
        for thread in late:
            for model in live[thread]:
                model.give_up()
        return not late

    def in_flight(self) -> int:
        """Return how many requests retiring versions still have to answer."""
        with self._guard:
            return sum(model.open for models in self._live.values() for model in models)

    def _run(self, name: str, models: Sequence[LoadedModel], prepared: Prepared) -> None:
        prepared.agents.tell(AgentAction.UNLOAD)
        for model in models:
            try:
                model.close()
            except Exception:
                log.exception("version %d of '%s' failed to close", model.version, name)
            self._table.settle(name, model.version, State.UNAVAILABLE, UNLOADED)
            self._unloaded(model)
            log.info("successfully unloaded '%s' version %d", name, model.version)
        prepared.agents.tell(AgentAction.UNLOAD_COMPLETE)
        prepared.release()
        with self._guard:
            del self._live[threading.current_thread()]
