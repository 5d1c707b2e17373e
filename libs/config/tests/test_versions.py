from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_config.versions import version_folders, versions_to_load
from tritonpy_testing import model_config

VERSIONS = st.sets(st.integers(1, 99))


def test_versions_are_numbered_folders_ascending():
    files = [
        "10/model",
        "2/model",
        "2/data/more",
        "1/",
        "config.pbtxt",
        "3",
        "labels/4",
        "x1/model",
        "1x/model",
        "-1/model",
        "²/model",
    ]
    assert version_folders(files) == ([1, 2, 10], [])


def test_folders_with_leading_zeros_are_ignored_and_named():
    assert version_folders(["01/model", "0/model", "007/", "1/model"]) == ([1], ["0", "007", "01"])


def test_folders_whose_number_is_no_version_are_ignored_and_named():
    assert version_folders([f"{2**63}/model", f"{2**63 - 1}/model", "1/model"]) == (
        [1, 2**63 - 1],
        [f"{2**63}"],
    )


@pytest.mark.parametrize(
    ("policy", "chosen", "missing"),
    [
        ("", [4], []),
        ("latest {}", [4], []),
        ("latest { num_versions: 2 }", [3, 4], []),
        ("latest { num_versions: 9 }", [1, 3, 4], []),
        ("all {}", [1, 3, 4], []),
        ("specific { versions: [4, 1] }", [1, 4], []),
        ("specific { versions: [4, 7, 2] }", [4], [2, 7]),
        ("specific {}", [], []),
    ],
)
def test_the_policy_chooses(policy, chosen, missing):
    config = model_config(f"version_policy {{ {policy} }}" if policy else "")
    assert versions_to_load(config, [4, 1, 3]) == (chosen, missing)


@given(VERSIONS, st.integers(1, 5))
def test_latest_are_the_highest_ones(available, count):
    chosen, _ = versions_to_load(
        model_config(f"version_policy {{ latest {{ num_versions: {count} }} }}"), available
    )
    assert len(chosen) == min(count, len(available))
    assert all(version in chosen or version < min(chosen) for version in available)


@given(VERSIONS, VERSIONS)
def test_specific_ones_are_chosen_or_missing(available, wanted):
    config = model_config("")
    config.version_policy.specific.versions.extend(wanted)
    chosen, missing = versions_to_load(config, available)
    assert (set(chosen), set(missing)) == (wanted & available, wanted - available)
