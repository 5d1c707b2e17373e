from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.cache.blobs import StoredFile
from tritonpy_repo_cloud.cache.eviction import select_evictions

STORED = st.lists(
    st.builds(
        StoredFile,
        st.integers(0, 99).map(lambda n: Path(str(n))),
        st.integers(0, 20),
        st.integers(0, 10),
    ),
    unique_by=lambda each: each.path,
)


def stored(name, size, used):
    return StoredFile(Path(name), size, used)


def test_the_least_recently_used_files_are_evicted_first_and_no_more_than_needed():
    everything = [stored("new", 5, 3), stored("old", 5, 1), stored("middle", 5, 2)]
    assert select_evictions(everything, (), limit=15, needed=0) == []
    assert select_evictions(everything, (), limit=15, needed=1) == [stored("old", 5, 1)]
    assert select_evictions(everything, (), limit=15, needed=6) == [
        stored("old", 5, 1),
        stored("middle", 5, 2),
    ]


def test_files_in_use_are_never_evicted():
    everything = [stored("old", 5, 1), stored("new", 5, 2)]
    assert select_evictions(everything, {Path("old")}, limit=10, needed=5) == [stored("new", 5, 2)]
    assert select_evictions(everything, {Path("old")}, limit=10, needed=6) is None


@given(STORED, st.data(), st.integers(0, 100), st.integers(0, 50))
def test_evictions_keep_the_limit_and_are_all_necessary(everything, data, limit, needed):
    used = (
        data.draw(st.sets(st.sampled_from([each.path for each in everything])))
        if everything
        else set()
    )
    evicted = select_evictions(everything, used, limit, needed)
    staying_at_least = sum(each.byte_size for each in everything if each.path in used)
    if evicted is None:
        assert staying_at_least + needed > limit
        return
    assert not {each.path for each in evicted} & used
    total = sum(each.byte_size for each in everything) + needed
    freed = sum(each.byte_size for each in evicted)
    assert total - freed <= limit
    assert not evicted or total - freed + evicted[-1].byte_size > limit
    newest = max((each.used_ns for each in evicted), default=-1)
    assert all(
        each.used_ns >= newest
        for each in everything
        if each not in evicted and each.path not in used
    )
