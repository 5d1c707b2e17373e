from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.completeness import Marked, Stable
from tritonpy_repo_cloud.remote_file import RemoteFile


def file(path, version="1", modified=None):
    return RemoteFile(f"m/{path}", path, 1, version, None, modified)


OLD, NEW = [file("a")], [file("a"), file("b")]


def test_a_model_is_whole_when_two_looks_a_moment_apart_agree():
    stable = Stable(2)
    assert "changed less than 2 s ago" in stable.wants("m", OLD, 0)
    assert stable.wants("m", OLD, 1.9)
    assert stable.wants("m", OLD, 2) == ""


def test_a_change_begins_the_wait_anew():
    stable = Stable(2)
    stable.wants("m", OLD, 0)
    assert stable.wants("m", NEW, 5)
    assert stable.wants("m", NEW, 6)
    assert stable.wants("m", NEW, 7) == ""


def test_without_a_wait_a_model_is_whole_as_it_is_found():
    assert Stable(0).wants("m", OLD, 0) == ""


def test_what_is_vouched_for_is_whole_and_what_is_forgotten_is_not():
    stable = Stable(60)
    stable.vouch("m", OLD)
    assert stable.wants("m", OLD, 0) == ""
    stable.keep({"other"})
    assert stable.wants("m", OLD, 0)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 2)), min_size=1))
def test_nothing_that_changed_within_the_time_is_taken(looks):
    stable, now, since, last = Stable(2), 0.0, 0.0, None
    for passed, version in looks:
        now += passed
        if version != last:
            since, last = now, version
        wanting = stable.wants("m", [file("a", str(version))], now)
        assert bool(wanting) == (now - since < 2)


def test_a_marker_makes_a_model_whole_when_no_file_is_newer():
    marked = Marked("DONE")
    assert marked.wants("m", OLD, 0) == "its marker file 'DONE' is not there"
    assert marked.wants("m", [file("a", modified=5), file("DONE", modified=5)], 0) == ""
    assert (
        marked.wants("m", [file("a", modified=6), file("DONE", modified=5)], 0)
        == "'m/a' is newer than its marker file 'DONE'"
    )
    assert marked.wants("m", [file("a"), file("DONE")], 0) == ""


def test_a_marker_deeper_in_the_folder_is_none():
    assert Marked("DONE").wants("m", [file("1/DONE")], 0)


def test_a_file_that_goes_without_a_new_marker_makes_a_model_incomplete():
    marked = Marked("DONE")
    done, again = file("DONE", "1", 5), file("DONE", "2", 9)
    assert marked.wants("m", [file("a"), file("b"), done], 0) == ""
    assert marked.wants("m", [file("a"), done], 1) == "'m/b' is gone, and its marker file 'DONE' is the same"
    assert marked.wants("m", [file("a"), file("b"), done], 2) == ""
    assert marked.wants("m", [file("a"), again], 3) == ""
    assert marked.wants("m", [again], 4)
    marked.keep({"other"})
    assert marked.wants("m", [again], 5) == ""
