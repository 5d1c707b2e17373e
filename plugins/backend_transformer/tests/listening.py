"""What continues texts and what listens to them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tritonpy import TritonError
from tritonpy_backend_transformer.continuation import Continuation, Hypothesis, Prompt
from tritonpy_backend_transformer.sampling import Sampling
from tritonpy_backend_transformer.sharing import Shared
from tritonpy_backend_transformer.tokenizer import Tokenizer
from tritonpy_backend_transformer.writers import OnToken, Writer

from .tiny_models import END


@dataclass
class Ear:
    """Keeps what it hears."""

    wants: bool = True
    times: int = 0
    hypotheses: list[Hypothesis] = field(default_factory=list)
    errors: list[TritonError] = field(default_factory=list)

    def wanted(self) -> bool:
        return self.wants

    def heard(self) -> None:
        self.times += 1

    def found(self, hypotheses: Sequence[Hypothesis]) -> None:
        self.hypotheses += hypotheses

    def failed(self, error: TritonError) -> None:
        self.errors.append(error)


def text(
    length: int = 3, ear: Ear | None = None, tokenizer: Tokenizer | None = None, source: int = 0, **sampling: object
) -> Continuation:
    """Return a text behind a prompt of `length` tokens."""
    prompt = Prompt(["a"] * length, ["b"] * source)
    return Continuation(ear or Ear(), prompt, Sampling(**sampling), {END}, tokenizer)  # type: ignore[arg-type]


class Counter(Writer):
    """Continues each text with the numbers of its tokens so far, and keeps how many texts each call had. `during` runs before each step."""

    def __init__(self, during=lambda step, texts: None) -> None:  # type: ignore[no-untyped-def]
        self.calls: list[int] = []
        self.during = during

    def write(self, texts: Sequence[Continuation], shared: Shared, on_token: OnToken) -> None:
        self.calls.append(len(texts))
        running = list(range(len(texts)))
        step = 0
        while running:
            self.during(step, texts)
            running = [place for place in running if not on_token(place, texts[place].length, None, None)]
            step += 1

    def search(self, texts: Sequence[Continuation]) -> list[list[Hypothesis]]:
        self.calls.append(len(texts))
        return [[Hypothesis([each.length], -1.0, ended=True)] for each in texts]
