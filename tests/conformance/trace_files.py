"""The contents of a server's trace files, without the numbers that differ between runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

WAIT_S = 30.0
PAUSE_S = 0.02
IN_TIME = (
    "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START", "COMPUTE_END", "REQUEST_END",
)  # fmt: skip


class TraceFiles:
    """The numbered files of a server that has written none yet; `next` waits for them in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0

    def next(self) -> list[dict[str, Any]]:
        """Return the records of the next file. Raises TimeoutError if none appears."""
        path = self._path.with_name(f"{self._path.name}.{self._number}")
        self._number += 1
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                return list(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, json.JSONDecodeError):  # missing or incomplete
                time.sleep(PAUSE_S)
        raise TimeoutError(f"{path} was not written")

    def there(self) -> int:
        """Return the number of files."""
        return len(list(self._path.parent.glob(f"{self._path.name}.*")))


def structure(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the contents of each trace by number: identity, timestamp names and tensors, in order."""
    numbers = sorted({record["id"] for record in records})
    return [dict(_describe(number, numbers, records)) for number in numbers]


def _describe(
    number: int, numbers: list[int], records: list[dict[str, Any]]
) -> Iterator[tuple[str, Any]]:
    own = [record for record in records if record["id"] == number]
    yield "identity", [_identity(record, numbers) for record in own if "model_name" in record]
    # the number of send records of a stream depends on a race in the real server
    yield (
        "timestamps",
        sorted({stamp["name"] for record in own for stamp in record.get("timestamps", ())}),
    )
    yield (
        "tensors",
        [(record["activity"], record["tensor"]) for record in own if "activity" in record],
    )
    yield "forms", sorted({tuple(sorted(record)) for record in own})


def _identity(record: dict[str, Any], numbers: list[int]) -> dict[str, Any]:
    parent = {"parent_id": numbers.index(record["parent_id"])} if "parent_id" in record else {}
    return {**record, "id": numbers.index(record["id"]), **parent}


def out_of_order(records: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the pairs of time stamps of a trace that are out of order."""
    found = []
    for number in {record["id"] for record in records}:
        at = {
            stamp["name"]: stamp["ns"]
            for record in records
            for stamp in record.get("timestamps", ())
            if record["id"] == number
        }
        found += [
            (one, other)
            for one, other in pairwise(name for name in IN_TIME if name in at)
            if at[one] > at[other]
        ]
    return found
