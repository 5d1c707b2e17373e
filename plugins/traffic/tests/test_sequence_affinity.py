from __future__ import annotations

from tritonpy import SequenceInfo
from tritonpy_traffic.sequence_affinity import SequenceAffinity
from tritonpy_traffic.spec import Target

HERE, THERE = Target("here"), Target("there")


def test_a_sequence_is_found_where_it_was_until_it_ends() -> None:
    sequences = SequenceAffinity(100)
    sequences.record(SequenceInfo(1, start=True), HERE, 0)
    sequences.record(SequenceInfo("text"), THERE, 0)
    assert sequences.find(SequenceInfo(1), 1) is HERE
    assert sequences.find(SequenceInfo("text"), 1) is THERE
    assert sequences.find(SequenceInfo(2), 1) is None
    sequences.record(SequenceInfo(1, end=True), HERE, 1)
    assert sequences.find(SequenceInfo(1), 1) is None
    assert len(sequences) == 1


def test_a_restarted_sequence_has_no_target() -> None:
    sequences = SequenceAffinity(100)
    sequences.record(SequenceInfo(1, start=True), HERE, 0)
    assert sequences.find(SequenceInfo(1, start=True), 1) is None


def test_idle_sequences_are_removed() -> None:
    sequences = SequenceAffinity(100)
    sequences.record(SequenceInfo(1), HERE, 0)
    sequences.record(SequenceInfo(2), HERE, 50)
    assert sequences.find(SequenceInfo(1), 101) is None
    sequences.record(SequenceInfo(3), HERE, 120)
    assert len(sequences) == 2
    assert sequences.find(SequenceInfo(2), 121) is HERE
