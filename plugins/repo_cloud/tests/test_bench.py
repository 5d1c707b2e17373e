from __future__ import annotations

import re
import sys

from bench import repositories


def test_the_benchmark_prints_its_results(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["bench", "--models", "3", "--kilobytes", "1", "--delay-ms", "0"]
    )
    repositories.main()
    rows = re.findall(r"^\| (.*?) \| [0-9.]+ s \|", capsys.readouterr().out, re.MULTILINE)
    assert rows == [
        "listing 3 models",
        "loading them sequentially",
        "loading 16 in parallel",
        "the same from the cache",
    ]
