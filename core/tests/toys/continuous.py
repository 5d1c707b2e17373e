"""A backend that processes up to four requests at once and admits new ones between its steps."""

from __future__ import annotations

import json
import os
import select
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy.api.contexts import InstanceContext, ModelContext
from tritonpy_types import Batch, InferRequest, InferResponse, Tensor

MAX_OPEN = 4


class Stepper:
    """Makes the steps of a `Countdown` wait for the test, and records the requests of each step."""

    def __init__(self) -> None:
        self.steps: list[list[int]] = []  # the remaining numbers, per step
        self._changed = threading.Condition()
        self._allowed = 0

    def step(self, remaining: list[int]) -> None:
        """Report a step and wait for permission."""
        with self._changed:
            self.steps.append(remaining)
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._allowed > 0, 10), (
                "the test never allowed the step"
            )
            self._allowed -= 1

    def allow(self, count: int = 1) -> None:
        """Allow `count` more steps."""
        with self._changed:
            self._allowed += count
            self._changed.notify_all()

    def wait_for(self, remaining: list[int]) -> None:
        """Wait until the last reported step has `remaining` numbers."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: bool(self.steps) and self.steps[-1] == remaining, 10
            ), self.steps


class ProcessStepper:
    """The same between two processes, through named pipes in a folder that each side opens."""

    def __init__(self, folder: Path) -> None:
        self.steps: list[list[int]] = []  # on the side of the test
        for name in ("steps", "allowed"):
            with suppress(FileExistsError):
                os.mkfifo(folder / name)
        # Open both ways, so that neither side waits for the other.
        self._steps = (folder / "steps").open("r+b", buffering=0)
        self._allowed = (folder / "allowed").open("r+b", buffering=0)

    def step(self, remaining: list[int]) -> None:
        """Report a step and wait for permission."""
        self._steps.write(json.dumps(remaining).encode() + b"\n")
        self._allowed.read(1)

    def allow(self, count: int = 1) -> None:
        """Allow `count` more steps."""
        self._allowed.write(b"." * count)

    def wait_for(self, remaining: list[int]) -> None:
        """Wait until a step has `remaining` numbers."""
        while not self.steps or self.steps[-1] != remaining:
            assert select.select([self._steps], [], [], 10)[0], (
                f"no further step after {self.steps}"
            )
            self.steps.append(json.loads(self._steps.readline()))

    def close(self) -> None:
        """Close this side."""
        self._steps.close()
        self._allowed.close()


class Countdown(Backend):
    """Responds to IN = n with OUT = n after n steps; the number 13 makes its step raise.

    `stepper` allows the steps.
    """

    stepper: Stepper | ProcessStepper

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        instance.max_open = MAX_OPEN

    def execute(self, batch: Batch) -> None:
        active = dict.fromkeys(batch.requests, 0)
        while active:
            while len(active) < MAX_OPEN and (
                more := self.instance.take_more(MAX_OPEN - len(active))
            ):
                active |= dict.fromkeys(more.requests, 0)
            self.stepper.step([_number(request) - done for request, done in active.items()])
            active = {
                request: done + 1
                for request, done in active.items()
                if self._step(request, done + 1)
            }

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


class ProcessCountdown(Countdown):
    """A countdown in any process; its steps wait for a `ProcessStepper`.

    The parameter `stepper` names the folder of the pipes.
    """

    def __init__(self, model: ModelContext, instance: InstanceContext) -> None:
        super().__init__(model, instance)
        self.stepper = ProcessStepper(Path(model.parameters["stepper"]))

    def close(self) -> None:
        self.stepper.close()


def _number(request: InferRequest) -> int:
    return int(request.inputs["IN"].numpy()[0])
