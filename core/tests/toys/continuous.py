"""A backend that works on up to four requests at once and admits new ones between its steps."""

from __future__ import annotations

import json
import os
import select
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from tritonpy.api.backend import Backend, InstanceContext, ModelContext
from tritonpy.types import Batch, InferRequest, InferResponse, Tensor

MAX_OPEN = 4


class Stepper:
    """Makes the steps of a `Countdown` wait for the test, and keeps what each step worked on."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []  # the numbers that remained, per step
        self._changed = threading.Condition()
        self._allowed = 0

    def step(self, remaining: list[int]) -> None:
        """Report a step and wait until it may be made."""
        with self._changed:
            self.steps.append(remaining)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._allowed > 0, 10), "nobody allowed the step"
            self._allowed -= 1

    def allow(self, count: int = 1) -> None:
        """Let `count` more steps be made."""
        with self._changed:
            self._allowed += count
            self._changed.notify_all()

    def wait_for(self, remaining: list[int]) -> None:
        """Wait until the last step reported works on `remaining`."""
        with self._changed:
            assert self._changed.wait_for(lambda: bool(self.steps) and self.steps[-1] == remaining, 10), self.steps


class FarStepper:
    """The same between two processes: named pipes in a folder, which each side opens."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[list[int]] = []  # on the side of the test
        for name in ("steps", "allowed"):
            with suppress(FileExistsError):
                os.mkfifo(folder / name)
        # Open both ways: who comes first does not wait for the other.
        self._steps = (folder / "steps").open("r+b", buffering=0)
        self._allowed = (folder / "allowed").open("r+b", buffering=0)

    def step(self, remaining: list[int]) -> None:
        """Report a step and wait until it may be made."""
        self._steps.write(json.dumps(remaining).encode() + b"\n")
        self._allowed.read(1)

    def allow(self, count: int = 1) -> None:
        """Let `count` more steps be made."""
        self._allowed.write(b"." * count)

    def wait_for(self, remaining: list[int]) -> None:
        """Wait until a step works on `remaining`."""
        while not self.steps or self.steps[-1] != remaining:
            assert select.select([self._steps], [], [], 10)[0], f"no further step after {self.steps}"
            self.steps.append(json.loads(self._steps.readline()))

    def close(self) -> None:
        """Close this side."""
        self._steps.close()
        self._allowed.close()


class Countdown(Backend):
    """A request of IN = n is answered after n steps with OUT = n; the number 13 makes its step raise. `stepper` allows the steps."""

    stepper: Stepper | FarStepper

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        instance.max_open = MAX_OPEN

    def execute(self, batch: Batch) -> None:
        active = dict.fromkeys(batch.requests, 0)
        while active:
            while len(active) < MAX_OPEN and (more := self.instance.take_more(MAX_OPEN - len(active))):
                active |= dict.fromkeys(more.requests, 0)
            self.stepper.step([_number(request) - done for request, done in active.items()])
            active = {request: done + 1 for request, done in active.items() if self._step(request, done + 1)}

    def _step(self, request: InferRequest, done: int) -> bool:
        number = _number(request)
        if number == 13:
            raise ValueError("thirteen steps are too many")
        if done < number:
            return True
        out = Tensor.from_numpy("OUT", np.array([number], np.int32))
        request.respond(InferResponse([out], self.model.name, self.model.version, request.id))
        return False


def countdown(stepper: Stepper) -> type[Backend]:
    """Return a backend whose steps wait for `stepper`."""
    return type("SteppedCountdown", (Countdown,), {"stepper": stepper})


class FarCountdown(Countdown):
    """A countdown in whatever process: its steps wait for the `FarStepper` in the folder that the parameter `stepper` names."""

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.stepper = FarStepper(Path(model.parameters["stepper"]))

    def close(self) -> None:
        self.stepper.close()


def _number(request: InferRequest) -> int:
    return int(request.inputs["IN"].numpy()[0])
