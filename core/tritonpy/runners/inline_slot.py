"""An instance that may be run on the event loop, in place of its own thread."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy.api.backend import InstanceContext
from tritonpy.runners.quickness import Quickness
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import Slot
from tritonpy.types import Batch


class InlineSlot(Slot):
    """Rung from the event loop, it is run at the end of the loop's turn while `quickness` is hopeful; the bell wakes the thread otherwise.

    Whoever is rung is the only one that runs the instance: the thread sleeps on until `run` rings the bell. It gets a batch that was cut already, or None.
    """

    __slots__ = ("_quickness", "_rings", "_run")

    def __init__(
        self, context: InstanceContext, rings: Rings, quickness: Quickness, run: Callable[[Batch | None], None]
    ) -> None:
        super().__init__(context)
        self._rings = rings
        self._quickness = quickness
        self._run = run

    def ring(self) -> None:
        if self.runs_here():
            self._rings.soon(self._run_what_waits)
        else:
            self.bell.release()

    def runs_here(self) -> bool:
        return self._quickness.hopeful and self._rings.in_turn()

    def run(self, batch: Batch) -> None:
        self._run(batch)

    def _run_what_waits(self) -> None:
        self._run(None)
