"""Tests of the rules in the root `conftest.py`; each one runs pytest in a subprocess."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "conftest.py"
ALLOWED = """
    @pytest.mark.skipif(True, reason="needs a GPU")
    def test_marked(): pass

    def test_called():
        pytest.skip("needs docker")
"""
OFFENCES = {
    "called": """
        def test_it():
            pytest.skip("not today")
    """,
    "marked": """
        @pytest.mark.skip(reason="flaky")
        def test_it(): pass
    """,
    "without_a_reason": """
        @pytest.mark.skip
        def test_it(): pass
    """,
    "by_a_fixture": """
        @pytest.fixture
        def thing():
            pytest.skip("gone")

        def test_it(thing): pass
    """,
    "expected_failure": """
        @pytest.mark.xfail(reason="needs a GPU")
        def test_it():
            assert False
    """,
    "expected_failure_that_passes": """
        @pytest.mark.xfail
        def test_it(): pass
    """,
    "whole_module": """
        pytest.skip("old", allow_module_level=True)
    """,
    "missing_import": """
        pytest.importorskip("there_is_no_such_module")
    """,
}
PROFILE = """
    import hypothesis.core

    def test_profile():
        settings = hypothesis.settings()
        assert settings.deadline is None
        assert not settings.derandomize
        print("examples come from", hypothesis.core.global_force_seed)
"""


def run(folder: Path, modules: Mapping[str, str], *arguments: str) -> tuple[int, str]:
    """Return the exit status and the output of a run of `modules` with the rules."""
    shutil.copy(RULES, folder / "conftest.py")
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text("import pytest\n" + textwrap.dedent(text))
    command = [
        sys.executable,
        "-m",
        "pytest",
        f"--rootdir={folder}",
        "-p",
        "no:cacheprovider",
        "-rP",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def offences(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    return run(tmp_path_factory.mktemp("offences"), OFFENCES)


def test_a_run_fails_for_unjustified_skips(offences: tuple[int, str]) -> None:
    status, output = offences
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert not re.search(r"\d (failed|error)", output)


@pytest.mark.parametrize("offence", OFFENCES)
def test_unjustified_skips_are_listed(offences: tuple[int, str], offence: str) -> None:
    listed = offences[1].partition("left out without leave")[2]
    assert re.search(rf"^test_{offence}\.py(::test_it)?: (skip|xfail): \S", listed, re.MULTILINE), (
        listed
    )


def test_a_skip_with_a_need_is_allowed_and_the_seed_is_printed(tmp_path: Path) -> None:
    status, output = run(tmp_path, {"allowed": ALLOWED, "profile": PROFILE})
    assert status == pytest.ExitCode.OK, output
    assert "1 passed, 2 skipped" in output
    assert "left out without leave" not in output
    match = re.search(r"--hypothesis-seed=(\d+)", output)
    assert match is not None, output
    assert f"examples come from {match[1]}" in output


def test_a_seed_can_be_given_and_a_failing_quiet_run_prints_it(tmp_path: Path) -> None:
    modules = {"profile": PROFILE, "failing": "def test_it(): assert False"}
    status, output = run(tmp_path, modules, "-q", "--hypothesis-seed=17")
    assert status == pytest.ExitCode.TESTS_FAILED, output
    assert "1 failed, 1 passed" in output
    assert "repeat with: --hypothesis-seed=17" in output
    assert "examples come from 17" in output
