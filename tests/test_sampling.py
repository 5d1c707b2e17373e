from __future__ import annotations

import pytest

from tests.sampling import Sampling

SHARE_VARIABLE, SEED_VARIABLE = "TRITONPY_SUITE_SHARE", "TRITONPY_SUITE_SEED"

NAMES = [f"topic/exchange {number}" for number in range(2000)]


def taken(sampling: Sampling) -> list[str]:
    return [name for name in NAMES if sampling.takes(name)]


def test_without_a_share_everything_runs(monkeypatch):
    monkeypatch.delenv(SHARE_VARIABLE, raising=False)
    assert taken(Sampling.of_environment("suite")) == NAMES


def test_a_share_is_about_kept_and_another_seed_takes_others():
    first, second = taken(Sampling("suite", 0.5, 1)), taken(Sampling("suite", 0.5, 2))
    assert 800 < len(first) < 1200
    assert first != second
    assert first == taken(Sampling("suite", 0.5, 1))


def test_the_selection_of_one_name_is_independent_of_the_others():
    assert [name for name in NAMES[::3] if Sampling("suite", 0.3, 7).takes(name)] == [
        name for name in taken(Sampling("suite", 0.3, 7)) if name in set(NAMES[::3])
    ]


def test_the_printed_variables_repeat_the_run(monkeypatch):
    monkeypatch.setenv(SHARE_VARIABLE, "0.25")
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    sampling = Sampling.of_environment("suite")
    line = sampling.described(len(taken(sampling)), len(NAMES), "suites")
    for setting in line.split()[-2:]:
        monkeypatch.setenv(*setting.split("="))
    assert taken(Sampling.of_environment("suite")) == taken(sampling)


@pytest.mark.parametrize("share", ["-0.1", "1.5", "half"])
def test_an_invalid_share_is_rejected(monkeypatch, share):
    monkeypatch.setenv(SHARE_VARIABLE, share)
    with pytest.raises(ValueError, match=r"share|half"):
        Sampling.of_environment("suite")
