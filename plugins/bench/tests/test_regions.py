from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tritonpy import StartupError
from tritonpy_bench.inputs.corpus import make_corpus
from tritonpy_bench.wire.regions import Regions

from .facts import INTS, TEXT, model, options


class Control:
    """A server's side: what is registered, or a refusal."""

    def __init__(self, refuses=""):
        self.registered = {}
        self._refuses = refuses

    def register(self, region, key, byte_size):
        if region.startswith(self._refuses) and self._refuses:
            raise StartupError("no room")
        self.registered[region] = (key, byte_size)

    def unregister(self, region):
        self.registered.pop(region, None)


def left(prefix="bench-"):
    return {path.name for path in Path("/dev/shm").glob(f"{prefix}*")}


def test_inputs_lie_where_requests_say_and_outputs_have_room_for_each():
    control, facts, told = Control(), model(INTS, TEXT, batch=8), options(batch=2, output_shared_memory_size=100)
    corpus = make_corpus(facts, told)
    before = left()
    regions = Regions(control, facts, told, corpus, places=3)
    content = Path("/dev/shm", regions.input_region).read_bytes()
    for tensor, part in zip(corpus.steps[0], regions.inputs[0], strict=True):
        assert content[part.offset : part.offset + part.byte_size] == tensor.content
    slices = [regions.output(place, number) for place in range(3) for number in range(2)]
    assert {part.byte_size for part in slices} == {200, 2 * 4 * 4}  # what varies gets what was asked for, per element
    ends = sorted((part.offset, part.offset + part.byte_size) for part in slices)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert ends[-1][1] <= control.registered[regions.output_region][1]
    regions.close()
    assert control.registered == {}
    assert left() == before


@pytest.mark.parametrize("refused", ["bench-in", "bench-out"])
def test_nothing_is_left_where_the_server_refuses(refused):
    control, facts, told = Control(refused), model(INTS), options()
    before = left()
    with pytest.raises(StartupError, match="no room"):
        Regions(control, facts, told, make_corpus(facts, told), places=1)
    assert control.registered == {}
    assert left() == before
