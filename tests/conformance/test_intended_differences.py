from __future__ import annotations

import pytest

from tests.conformance.difference import Difference
from tests.conformance.intended_differences import IntendedDifference, judge, read

STATUS = Difference("0/status", 500, 503)
TEXT = Difference("0/json/error", "no", "no, because")


def entry(**changes):
    return IntendedDifference(
        **{
            "exchange": "crashes/*",
            "at": "0/status",
            "reason": "it says when it is back",
            **changes,
        }
    )


def test_an_unlisted_difference_fails():
    verdict = judge("crashes/killed", [STATUS, TEXT], [entry()])
    assert (verdict.unlisted, verdict.listed, verdict.good) == ([TEXT], [STATUS], False)
    assert "no, because" in str(verdict)


def test_a_difference_caused_by_other_exchanges_may_be_missing_in_a_sample():
    made = [entry(after_others=True)]
    assert judge("crashes/killed", [], made, sample=True).good
    assert not judge("crashes/killed", [], made).good
    assert not judge("crashes/killed", [], [entry()], sample=True).good


def test_listed_differences_pass():
    assert judge("crashes/killed", [STATUS, TEXT], [entry(), entry(at="0/json/*")]).good
    assert judge("crashes/killed", [STATUS], [entry(triton="5..", tritonpy="503")]).good


def test_equal_answers_pass_where_nothing_is_listed():
    assert judge("errors/raises", [], [entry()]).good


@pytest.mark.parametrize("found", [[], [TEXT]])
def test_a_listed_difference_that_disappeared_fails(found):
    verdict = judge("crashes/killed", found, [entry()])
    assert not verdict.good
    assert "no longer different: crashes/* at 0/status" in str(verdict)


@pytest.mark.parametrize(
    "changes", [{"triton": "200"}, {"tritonpy": "50"}, {"exchange": "other/*"}, {"at": "1/status"}]
)
def test_another_difference_than_the_listed_one_fails(changes):
    assert not judge("crashes/killed", [STATUS], [entry(**changes)]).good


def write(tmp_path, text):
    path = tmp_path / "differences.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_list_is_read_and_an_entry_may_name_several_exchanges(tmp_path):
    path = write(
        tmp_path, '[[difference]]\nexchange = ["a", "b"]\nat = "0"\nreason = "so"\ntriton = "1"\n'
    )
    assert read(path) == [
        IntendedDifference("a", "0", "so", "1"),
        IntendedDifference("b", "0", "so", "1"),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[[difference]]\nexchange = "a"\nat = "0"\nreason = " "\n', ValueError),
        ('[[difference]]\nexchange = "a"\nat = "0"\n', TypeError),
        ('[[difference]]\nexchange = "a"\nat = "0"\nreason = "so"\nwhy = "else"\n', TypeError),
    ],
)
def test_entries_without_a_reason_or_with_unknown_keys_are_refused(tmp_path, text, error):
    with pytest.raises(error):
        read(write(tmp_path, text))


def test_additional_text_is_removed_before_the_comparison():
    placed = entry(at="0/error", added=r"in line \d+: ")
    assert placed.covers(
        "crashes/killed", Difference("0/error", "failed: no dims", "failed: in line 7: no dims")
    )
    assert not placed.covers(
        "crashes/killed", Difference("0/error", "failed: no dims", "failed: in line 7: no type")
    )
