"""The example of README runs."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_example_runs(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})  # noqa: S102 - our own file
    assert '"queue_ms.digits":1.5' in capsys.readouterr().out
