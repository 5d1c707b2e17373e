"""An instance that may be run on the event loop, in place of its own thread."""

from __future__ import annotations

from collections.abc import Callable

from tritonpy.api.backend import InstanceContext
from tritonpy.runners.quickness import Quickness
from tritonpy.runners.rings import Rings
from tritonpy.runners.slot import Slot


class InlineSlot(Slot):
    """Rung from the event loop, it has `run` called at the end of the loop's turn while `quickness` is hopeful; the bell wakes the thread otherwise.

    Whoever is rung is the only one that runs the instance: the thread sleeps on until `run` rings the bell.
    """

    __slots__ = ("_quickness", "_rings", "_run")

    def __init__(self, context: InstanceContext, rings: Rings, quickness: Quickness, run: Callable[[], None]) -> None:
        super().__init__(context)
        self._rings = rings
        self._quickness = quickness
        self._run = run

    def ring(self) -> None:
        if self._quickness.hopeful and self._rings.in_turn():
            self._rings.soon(self._run)
        else:
            self.bell.release()
