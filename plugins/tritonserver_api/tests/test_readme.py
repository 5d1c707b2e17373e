from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1]
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code = README.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(FOLDER.parents[1])
    exec(code, {"__name__": "example"})  # noqa: S102 - our own page
    assert capsys.readouterr().out == README.partition("```text\n")[2].partition("```")[0]
