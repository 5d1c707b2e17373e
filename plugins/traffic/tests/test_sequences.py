from __future__ import annotations

from tritonpy import SequenceInfo
from tritonpy_traffic.sequences import Sequences
from tritonpy_traffic.spec import Target

HERE, THERE = Target("here"), Target("there")


def test_a_sequence_is_found_where_it_was_until_it_ends() -> None:
    sequences = Sequences(100)
    sequences.note(SequenceInfo(1, start=True), HERE, 0)
    sequences.note(SequenceInfo("text"), THERE, 0)
    assert sequences.find(SequenceInfo(1), 1) is HERE
    assert sequences.find(SequenceInfo("text"), 1) is THERE
    assert sequences.find(SequenceInfo(2), 1) is None
    sequences.note(SequenceInfo(1, end=True), HERE, 1)
    assert sequences.find(SequenceInfo(1), 1) is None
    assert len(sequences) == 1


def test_one_that_begins_anew_is_free() -> None:
    sequences = Sequences(100)
    sequences.note(SequenceInfo(1, start=True), HERE, 0)
    assert sequences.find(SequenceInfo(1, start=True), 1) is None


def test_what_says_nothing_for_too_long_is_forgotten() -> None:
    sequences = Sequences(100)
    sequences.note(SequenceInfo(1), HERE, 0)
    sequences.note(SequenceInfo(2), HERE, 50)
    assert sequences.find(SequenceInfo(1), 101) is None
    sequences.note(SequenceInfo(3), HERE, 120)
    assert len(sequences) == 2
    assert sequences.find(SequenceInfo(2), 121) is HERE
