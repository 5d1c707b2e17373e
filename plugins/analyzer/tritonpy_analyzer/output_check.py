"""Compares the outputs of candidates that may change them, such as ones of a lower precision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tritonpy_analyzer.servers import InvalidCandidate, ServerSlot
from tritonpy_analyzer.space import Candidate
from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.options import BadUsage
from tritonpy_load_generator.target.control import RequestRejected
from tritonpy_load_generator.target.http_control import HttpControlClient
from tritonpy_load_generator.target.metadata import ModelDescription

_LEAST_SCALE = 1e-6


class OutputCheck:
    """Checks candidates against the outputs of the present configuration, with equal inputs.

    `slot` is a server that serves the present configuration. `settings` are the (model, name) pairs
    that may change outputs. The difference of an output is the greatest one of its elements as a
    share of the greatest element; other types must be equal.
    """

    def __init__(
        self,
        slot: ServerSlot,
        model: ModelDescription,
        settings: frozenset[tuple[str, str]],
        present: Candidate,
        bound: float,
    ) -> None:
        self._model = model
        self._settings = settings
        self._present = self._of(present)
        self._bound = bound
        self._reference = self._outputs(slot)
        self._verdicts: dict[tuple[Any, ...], str] = {}

    def _of(self, candidate: Candidate) -> tuple[Any, ...]:
        return tuple(
            value for model, name, value in candidate.settings if (model, name) in self._settings
        )

    def check(self, slot: ServerSlot, candidate: Candidate) -> None:
        """Raise InvalidCandidate if the outputs of the served candidate differ too much."""
        values = self._of(candidate)
        if values == self._present:
            return
        if values not in self._verdicts:
            self._verdicts[values] = self._verdict(self._outputs(slot))
        if self._verdicts[values]:
            raise InvalidCandidate(self._verdicts[values])

    def _verdict(self, outputs: Mapping[str, list[Any]]) -> str:
        for name, expected in self._reference.items():
            difference = relative_difference(expected, outputs.get(name, []))
            if difference > self._bound:
                return (
                    f"output '{name}' differs by {difference:.2%}, the limit is {self._bound:.2%}"
                )
        return ""

    def _outputs(self, slot: ServerSlot) -> Mapping[str, list[Any]]:
        if not isinstance(slot.control, HttpControlClient):
            raise BadUsage("--allow-precision compares outputs over HTTP: use -i http")
        corpus = make_corpus(self._model, slot.options)
        inputs = [
            {
                "name": tensor.name,
                "datatype": tensor.datatype,
                "shape": list(tensor.shape),
                "data": tensor.as_json(),
            }
            for tensor in corpus.steps[0]
        ]
        try:
            response = slot.control.infer(self._model.name, {"inputs": inputs})
        except RequestRejected as error:
            raise InvalidCandidate(f"outputs cannot be compared: {error}") from error
        return {str(each["name"]): list(each["data"]) for each in response["outputs"]}


def relative_difference(expected: list[Any], found: list[Any]) -> float:
    """Return the greatest difference of two flat lists as a share of the greatest element.

    It is infinite for lists of different lengths, or different elements that are no numbers.
    """
    if len(expected) != len(found):
        return float("inf")
    if not expected or json.dumps(expected) == json.dumps(found):
        return 0.0
    if not all(isinstance(each, (int, float)) for each in (*expected, *found)):
        return float("inf")
    ours, theirs = np.asarray(expected, np.float64), np.asarray(found, np.float64)
    scale = max(float(np.abs(ours).max()), _LEAST_SCALE)
    return float(np.abs(ours - theirs).max()) / scale
