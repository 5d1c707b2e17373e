from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.cache.blobs import Stored
from tritonpy_repo_cloud.cache.room import to_evict

STORED = st.lists(
    st.builds(Stored, st.integers(0, 99).map(lambda n: Path(str(n))), st.integers(0, 20), st.integers(0, 10)),
    unique_by=lambda each: each.path,
)


def stored(name, size, used):
    return Stored(Path(name), size, used)


def test_what_was_not_used_for_longest_goes_first_and_no_more_than_needed():
    everything = [stored("new", 5, 3), stored("old", 5, 1), stored("middle", 5, 2)]
    assert to_evict(everything, (), limit=15, needed=0) == []
    assert to_evict(everything, (), limit=15, needed=1) == [stored("old", 5, 1)]
    assert to_evict(everything, (), limit=15, needed=6) == [stored("old", 5, 1), stored("middle", 5, 2)]


def test_what_is_in_use_stays_even_where_there_is_no_room_then():
    everything = [stored("old", 5, 1), stored("new", 5, 2)]
    assert to_evict(everything, {Path("old")}, limit=10, needed=5) == [stored("new", 5, 2)]
    assert to_evict(everything, {Path("old")}, limit=10, needed=6) is None


@given(STORED, st.data(), st.integers(0, 100), st.integers(0, 50))
def test_the_limit_is_kept_nothing_in_use_goes_and_nothing_goes_in_vain(everything, data, limit, needed):
    used = data.draw(st.sets(st.sampled_from([each.path for each in everything]))) if everything else set()
    going = to_evict(everything, used, limit, needed)
    staying_at_least = sum(each.byte_size for each in everything if each.path in used)
    if going is None:
        assert staying_at_least + needed > limit
        return
    assert not {each.path for each in going} & used
    total = sum(each.byte_size for each in everything) + needed
    freed = sum(each.byte_size for each in going)
    assert total - freed <= limit
    assert not going or total - freed + going[-1].byte_size > limit
    newest = max((each.used_ns for each in going), default=-1)
    assert all(each.used_ns >= newest for each in everything if each not in going and each.path not in used)
