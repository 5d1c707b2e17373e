from __future__ import annotations

from itertools import count, islice, repeat

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_load_generator.loops.jobs import (
    PlainJobSource,
    SequenceJobSource,
    sequence_ids,
    sequence_lengths,
)


def test_plain_requests_cycle_through_all_inputs():
    jobs = PlainJobSource(3)
    assert [jobs.next_job(slot).step for slot in (0, 0, 5, 1)] == [0, 1, 2, 0]
    assert jobs.closing_job(0) is None


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(0, 6), min_size=1),
    st.lists(st.integers(0, 3), min_size=1, max_size=100),
)
def test_sequences_are_complete_and_open_ones_have_distinct_ids(streams, lengths, slots):
    jobs = SequenceJobSource(streams, iter([*lengths, *repeat(2, 200)]), count(1))
    taken, seen, open_at = {}, [], {}
    for slot in slots:
        job = jobs.next_job(slot)
        assert job.start == (slot not in open_at)
        if job.start:
            assert job.sequence not in open_at.values()
            open_at[slot] = job.sequence
            seen.append(job.sequence)
        assert job.sequence == open_at[slot]
        taken.setdefault(job.sequence, []).append(job)
        if job.end:
            del open_at[slot]
    for slot in list(open_at):
        last = jobs.closing_job(slot)
        assert last.sequence == open_at[slot]
        assert last.end
        assert not last.start
        assert jobs.closing_job(slot) is None
    for number, sequence in enumerate(seen):
        stream = streams[number % len(streams)]
        steps = [job.step for job in taken[sequence]]
        assert steps == [stream[at % len(stream)] for at in range(len(steps))]
        assert [job.start for job in taken[sequence]] == [True] + [False] * (len(steps) - 1)


def test_a_sequence_has_the_length_of_its_data_by_default():
    jobs = SequenceJobSource([[4, 5, 6]], repeat(0), count(1))
    assert [(job.step, job.start, job.end) for job in (jobs.next_job(0) for _ in range(3))] == [
        (4, True, False), (5, False, False), (6, False, True),
    ]  # fmt: skip


def test_a_sequence_of_one_request_begins_and_ends_with_it():
    job = SequenceJobSource([[0]], repeat(1), count(9)).next_job(0)
    assert (job.sequence, job.start, job.end) == (9, True, True)


@given(st.integers(1, 100), st.integers(0, 100), st.integers())
def test_lengths_stay_within_their_variation(base, percent, seed):
    for length in islice(sequence_lengths(base, percent, seed), 50):
        assert max(base - base * percent / 100, 1) <= length <= base + base * percent / 100


@given(st.integers(1, 4), st.integers(1, 1000), st.none() | st.integers(4, 20))
def test_processes_use_disjoint_ids_within_the_range(client_count, start, size):
    end = None if size is None else start + size
    parts = [
        set(islice(sequence_ids(start, end, client_index, client_count), 100))
        for client_index in range(client_count)
    ]
    assert len(set().union(*parts)) == sum(map(len, parts))
    for number in set().union(*parts):
        assert start <= number
        assert end is None or number < end


def test_an_id_is_reused_only_after_its_sequence_ended():
    jobs = SequenceJobSource([[0]], repeat(3), sequence_ids(1, 3, 0, 1))
    assert (jobs.next_job(0).sequence, jobs.next_job(1).sequence) == (1, 2)
    jobs.next_job(1)
    assert jobs.next_job(1).end
    assert jobs.next_job(1).sequence == 2  # 1 is still open
