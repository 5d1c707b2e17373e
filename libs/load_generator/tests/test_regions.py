from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tritonpy import StartupError
from tritonpy_load_generator.inputs.corpus import make_corpus
from tritonpy_load_generator.wire.regions import ClientRegions

from .metadata import INTS, TEXT, model, options


class FakeControl:
    """A server that keeps registrations, or rejects those of regions with the prefix `refuses`."""

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


def test_input_slices_hold_the_inputs_and_output_slices_do_not_overlap():
    control, description, given = (
        FakeControl(),
        model(INTS, TEXT, batch=8),
        options(batch=2, output_shared_memory_size=100),
    )
    corpus = make_corpus(description, given)
    before = left()
    regions = ClientRegions(control, description, given, corpus, slot_count=3)
    content = Path("/dev/shm", regions.input_region).read_bytes()
    for tensor, part in zip(corpus.steps[0], regions.inputs[0], strict=True):
        assert content[part.offset : part.offset + part.byte_size] == tensor.content
    slices = [regions.output(slot, number) for slot in range(3) for number in range(2)]
    assert {part.byte_size for part in slices} == {
        200,
        2 * 4 * 4,
    }  # variable outputs get the option's size per batch element
    ends = sorted((part.offset, part.offset + part.byte_size) for part in slices)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))
    assert ends[-1][1] <= control.registered[regions.output_region][1]
    regions.close()
    assert control.registered == {}
    assert left() == before


@pytest.mark.parametrize("refused", ["bench-in", "bench-out"])
def test_nothing_is_left_after_a_rejected_registration(refused):
    control, description, given = FakeControl(refused), model(INTS), options()
    before = left()
    with pytest.raises(StartupError, match="no room"):
        ClientRegions(control, description, given, make_corpus(description, given), slot_count=1)
    assert control.registered == {}
    assert left() == before
