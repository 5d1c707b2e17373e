"""Fake models and listeners of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tritonpy import TritonError
from tritonpy_backend_transformer.continuation import Continuation, Hypothesis, Prompt
from tritonpy_backend_transformer.generation_models import GenerationModel, OnToken
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.shared_calls import SharedCallOptions
from tritonpy_backend_transformer.tokenizer import Tokenizer

from .tiny_models import END


@dataclass
class RecordingListener:
    """Records calls of a listener."""

    active: bool = True
    times: int = 0
    hypotheses: list[Hypothesis] = field(default_factory=list)
    errors: list[TritonError] = field(default_factory=list)

    def is_active(self) -> bool:
        return self.active

    def on_progress(self) -> None:
        self.times += 1

    def on_search_results(self, hypotheses: Sequence[Hypothesis]) -> None:
        self.hypotheses += hypotheses

    def on_error(self, error: TritonError) -> None:
        self.errors.append(error)


def text(
    length: int = 3,
    listener: RecordingListener | None = None,
    tokenizer: Tokenizer | None = None,
    source: int = 0,
    **sampling: object,
) -> Continuation:
    """Return a text with a prompt of `length` tokens."""
    prompt = Prompt(["a"] * length, ["b"] * source)
    return Continuation(
        listener or RecordingListener(), prompt, Sampling(**sampling), {END}, tokenizer
    )  # type: ignore[arg-type]


class FakeModel(GenerationModel):
    """Generates each text's length as its next token, and records the number of texts per call.

    `during` runs before each step.
    """

    def __init__(self, during=lambda step, texts: None) -> None:  # type: ignore[no-untyped-def]
        self.calls: list[int] = []
        self.during = during

    def write(
        self, texts: Sequence[Continuation], shared: SharedCallOptions, on_token: OnToken
    ) -> None:
        self.calls.append(len(texts))
        running = list(range(len(texts)))
        step = 0
        while running:
            self.during(step, texts)
            running = [
                index for index in running if not on_token(index, texts[index].length, None, None)
            ]
            step += 1

    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        self.calls.append(len(texts))
        return [[Hypothesis([each.length], -1.0, ended=True)] for each in texts]
