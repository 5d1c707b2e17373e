"""Run exchanges on both servers and print the differences.

Usage: `python -m tests.conformance.compare [PATTERN ...]`. With `--triton-only FILE`, only the real
Triton runs and its responses are written to FILE.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from tests.conformance import intended_differences, repository
from tests.conformance.difference import differences
from tests.conformance.exchange import Exchange, Topic
from tests.conformance.exchange_runner import ExchangeRunner, run_on_both
from tests.conformance.server import running, triton_command, tritonpy_command
from tests.conformance.topics import TOPICS, full_name

TRITON_RESTARTS = 15
"""The real Triton 2.51 dies now and then when a model's call of a metric or of a load fails, and every other time when two requests of a warm-up do."""


def main() -> int:
    """Return 0 if all differences are intended."""
    parser = argparse.ArgumentParser(
        description="Ask the real Triton and tritonpy the same questions."
    )
    parser.add_argument(
        "patterns", nargs="*", metavar="PATTERN", help="topic/exchange, with * (default: all)"
    )
    parser.add_argument(
        "--triton-only", metavar="FILE", help="ask the real Triton alone, write its answers to FILE"
    )
    parser.add_argument("--keep", metavar="DIR", help="keep repository and logs in this folder")
    options = parser.parse_args()
    chosen = [
        (topic, one)
        for topic in TOPICS
        for one in topic.exchanges
        if _wanted(topic, one, options.patterns)
    ]
    with _folder(options.keep) as folder, contextlib.ExitStack() as stack:
        models = repository.write(folder / "models")
        triton = stack.enter_context(
            ExchangeRunner(
                lambda flags: running(triton_command(), models, folder / "triton.log", *flags),
                TRITON_RESTARTS,
            )
        )
        if options.triton_only:
            return _record(triton, chosen, Path(options.triton_only))
        tritonpy = stack.enter_context(
            ExchangeRunner(
                lambda flags: running(tritonpy_command(), models, folder / "tritonpy.log", *flags)
            )
        )
        return compare(triton, tritonpy, chosen)


def _wanted(topic: Topic, exchange: Exchange, patterns: list[str]) -> bool:
    return not patterns or any(
        fnmatchcase(full_name(topic, exchange), pattern) for pattern in patterns
    )


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(parents=True)
        yield Path(keep).resolve()
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)


def compare(
    triton: ExchangeRunner, tritonpy: ExchangeRunner, chosen: list[tuple[Topic, Exchange]]
) -> int:
    """Run the exchanges on both servers and print each verdict; return 0 if all are good."""
    listed = intended_differences.read()
    words = []
    for topic, exchange in chosen:
        name = full_name(topic, exchange)
        try:
            found = list(differences(*run_on_both(triton, tritonpy, topic, exchange)))
            verdict = intended_differences.judge(name, found, listed)
            words.append(
                "NOT EQUAL" if not verdict.good else "as listed" if verdict.listed else "equal"
            )
            details = str(verdict)
        except Exception as error:  # the next exchange may still work
            words.append("FAILED")
            details = f"{type(error).__name__}: {error}"
        print(f"{words[-1]:10} {name}", flush=True)
        if details:
            print("\n".join(f"    {line}" for line in details.splitlines()), flush=True)
    print(
        f"{len(words)} exchanges:",
        ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words))),
    )
    return int(not {"NOT EQUAL", "FAILED"}.isdisjoint(words))


def _record(triton: ExchangeRunner, chosen: list[tuple[Topic, Exchange]], path: Path) -> int:
    with path.open("w", encoding="utf-8") as file:
        for topic, exchange in chosen:
            file.write(f"### {full_name(topic, exchange)}\n")
            for place, response in triton.run(topic, exchange).items():
                file.write(f"{place}: {json.dumps(response, ensure_ascii=False)}\n")
            file.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
