from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tritonpy_repo_cloud.completeness import MarkerRule, StabilityRule
from tritonpy_repo_cloud.remote_file import RemoteFile


def file(path, version="1", modified=None):
    return RemoteFile(f"m/{path}", path, 1, version, None, modified)


OLD, NEW = [file("a")], [file("a"), file("b")]


def test_a_model_is_complete_when_its_files_stay_unchanged():
    stable = StabilityRule(2)
    assert "changed less than 2 s ago" in stable.incomplete_reason("m", OLD, 0)
    assert stable.incomplete_reason("m", OLD, 1.9)
    assert stable.incomplete_reason("m", OLD, 2) == ""


def test_a_change_restarts_the_wait():
    stable = StabilityRule(2)
    stable.incomplete_reason("m", OLD, 0)
    assert stable.incomplete_reason("m", NEW, 5)
    assert stable.incomplete_reason("m", NEW, 6)
    assert stable.incomplete_reason("m", NEW, 7) == ""


def test_without_a_wait_a_model_is_complete_immediately():
    assert StabilityRule(0).incomplete_reason("m", OLD, 0) == ""


def test_a_model_marked_complete_is_complete_until_forgotten():
    stable = StabilityRule(60)
    stable.mark_complete("m", OLD)
    assert stable.incomplete_reason("m", OLD, 0) == ""
    stable.retain({"other"})
    assert stable.incomplete_reason("m", OLD, 0)


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 2)), min_size=1))
def test_a_recently_changed_model_is_incomplete(looks):
    stable, now, since, last = StabilityRule(2), 0.0, 0.0, None
    for passed, version in looks:
        now += passed
        if version != last:
            since, last = now, version
        reason = stable.incomplete_reason("m", [file("a", str(version))], now)
        assert bool(reason) == (now - since < 2)


def test_a_marker_completes_a_model_if_no_file_is_newer():
    marked = MarkerRule("DONE")
    assert marked.incomplete_reason("m", OLD, 0) == "its marker file 'DONE' does not exist"
    assert marked.incomplete_reason("m", [file("a", modified=5), file("DONE", modified=5)], 0) == ""
    assert (
        marked.incomplete_reason("m", [file("a", modified=6), file("DONE", modified=5)], 0)
        == "'m/a' is newer than its marker file 'DONE'"
    )
    assert marked.incomplete_reason("m", [file("a"), file("DONE")], 0) == ""


def test_a_marker_in_a_subfolder_is_ignored():
    assert MarkerRule("DONE").incomplete_reason("m", [file("1/DONE")], 0)


def test_removing_a_file_without_a_new_marker_makes_a_model_incomplete():
    marked = MarkerRule("DONE")
    done, again = file("DONE", "1", 5), file("DONE", "2", 9)
    assert marked.incomplete_reason("m", [file("a"), file("b"), done], 0) == ""
    assert (
        marked.incomplete_reason("m", [file("a"), done], 1)
        == "'m/b' was removed, but its marker file 'DONE' is unchanged"
    )
    assert marked.incomplete_reason("m", [file("a"), file("b"), done], 2) == ""
    assert marked.incomplete_reason("m", [file("a"), again], 3) == ""
    assert marked.incomplete_reason("m", [again], 4)
    marked.retain({"other"})
    assert marked.incomplete_reason("m", [again], 5) == ""
