"""What a job does with rows: it makes requests from them, and rows of the output from results."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from tritonpy import Tensor, TritonError
from tritonpy_batch.binding import Binding
from tritonpy_batch.conversion import ConversionRules, InputColumn, convert, null_text
from tritonpy_batch.model_interface import ModelInterface
from tritonpy_batch.output_table import OutputColumn, failure_columns, output_schema
from tritonpy_batch.rows import SourceRows

Done = Callable[[Any, TritonError | None], None]
"""Called with the result of a request or its error, on any thread."""

_FIRST_FAILED_STATUS = 400


class Work(msgspec.Struct):
    """One request for the rows `rows` of a block: `payload` is the task's own."""

    rows: Sequence[int]
    payload: Any


class RowBlock(msgspec.Struct):
    """Rows that are converted, sent and written together.

    `errors` and `attempts` are those of single rows, `results` pairs of rows and results.
    `skipped` rows have an error because they are null. `nbytes` counts what is in memory,
    `source_bytes` only what was read.
    """

    rows: SourceRows
    works: list[Work]
    errors: dict[int, str]
    nbytes: int
    source_bytes: int
    skipped: frozenset[int] = frozenset()
    attempts: dict[int, int] = {}
    results: list[tuple[Sequence[int], Any]] = []


class Task(ABC):
    """The steps of a job that depend on what is sent; `schema` has the columns of the output."""

    schema: pa.Schema
    batch_size: int

    @abstractmethod
    def prepare(self, rows: SourceRows) -> RowBlock:
        """Return rows with the requests for them."""

    @abstractmethod
    def part(self, work: Work, start: int, stop: int) -> Work:
        """Return a request for some of the rows of `work`."""

    @abstractmethod
    def assemble(self, block: RowBlock) -> pa.RecordBatch:
        """Return the rows of the output, in the order of the input."""


class TensorTask(Task):
    """Runs a model: columns become tensors, rows become batches of up to `batch_size`."""

    def __init__(
        self,
        model: ModelInterface,
        binding: Binding,
        outputs: Sequence[OutputColumn],
        rules: ConversionRules,
        batch_size: int,
    ) -> None:
        self._binding = binding
        self._outputs = outputs
        self._output_row_bytes = sum(output.row_bytes for output in outputs)
        self._rules = rules
        self._batched = model.max_batch_size > 0
        self.batch_size = batch_size
        kept = pa.schema([binding.schema.field(name) for name in binding.kept])
        self.schema = output_schema(outputs, kept)

    def prepare(self, rows: SourceRows) -> RowBlock:
        """Convert the inputs and cut them into batches of rows with equal shapes."""
        errors = dict(rows.errors)
        columns = [convert(each, rows.table, errors, self._rules) for each in self._binding.inputs]
        nbytes = sum(column.values.nbytes for column in columns) + rows.table.nbytes
        nbytes += len(rows) * self._output_row_bytes  # results wait for the writer, too
        kept = SourceRows(rows.table.select(list(self._binding.kept)), rows.sources)
        works = self._works(columns, len(rows), errors)
        nulls = {null_text(name) for each in self._binding.inputs for name in each.columns}
        skipped = frozenset(row for row, text in errors.items() if text in nulls)
        return RowBlock(
            kept, works, errors, nbytes, rows.table.nbytes, skipped, dict.fromkeys(errors, 0)
        )

    def _works(
        self, columns: Sequence[InputColumn], count: int, errors: Mapping[int, str]
    ) -> list[Work]:
        good: Sequence[int] = range(count)
        if errors:
            good = [row for row in good if row not in errors]
        groups: list[Sequence[int]] = [good]
        if any(len(column.shapes) > 1 for column in columns):
            by_shape: dict[tuple[Any, ...], list[int]] = {}
            for row in good:
                by_shape.setdefault(tuple(column.shape(row) for column in columns), []).append(row)
            groups = list(by_shape.values())
        works: list[Work] = []
        for members in groups:
            works += [
                Work(members[at : at + self.batch_size], columns)
                for at in range(0, len(members), self.batch_size)
            ]
        return works

    def tensors(self, work: Work) -> dict[str, Tensor]:
        """Return the inputs of a request."""
        rows = work.rows
        columns: Sequence[InputColumn] = work.payload
        start, stop = 0, len(rows)
        if isinstance(rows, range):
            start, stop = rows.start, rows.stop
        else:
            columns = [column.take(rows) for column in columns]
        return {each.name: each.tensor(start, stop, self._batched) for each in columns}

    def part(self, work: Work, start: int, stop: int) -> Work:
        """Return a request for some of the rows."""
        return Work(work.rows[start:stop], work.payload)

    def assemble(self, block: RowBlock) -> pa.RecordBatch:
        """Return kept columns, outputs and failures."""
        count = len(block.rows)
        results = sorted(block.results, key=lambda each: each[0][0])
        columns = []
        for output in self._outputs:
            found = [(rows, tensors[output.spec.name]) for rows, tensors in results]
            columns.append(output.column(found, count, block.errors))
        kept = [block.rows.table.column(name) for name in self._binding.kept]
        last = failure_columns(block.errors, block.attempts, count)
        return pa.RecordBatch.from_arrays([*kept, *columns, *last], schema=self.schema)


class HttpCall(msgspec.Struct, frozen=True):
    """A request of an OpenAI batch file."""

    custom_id: str
    method: str
    url: str
    body: msgspec.Raw


class HttpReply(msgspec.Struct, frozen=True):
    """A response: its status, the id that the server gave it, and the JSON body."""

    status: int
    request_id: str
    body: Any

    @property
    def message(self) -> str:
        """The error in the body, or the body itself."""
        error = self.body.get("error", self.body) if isinstance(self.body, dict) else self.body
        return str(error.get("message", error) if isinstance(error, dict) else error)


class RequestTask(Task):
    """Sends the requests of an OpenAI batch file; a row of the output is its line there.

    Format: platform.openai.com/docs/api-reference/batch.
    """

    def __init__(self) -> None:
        self.batch_size = 1
        self.schema = pa.schema([("line", pa.string())])

    def prepare(self, rows: SourceRows) -> RowBlock:
        """Decode the lines."""
        errors = dict(rows.errors)
        works = []
        for at, line in enumerate(rows.table.column(0).to_pylist()):
            if at in errors:
                continue
            try:
                works.append(Work((at,), msgspec.json.decode(line, type=HttpCall)))
            except msgspec.MsgspecError as error:
                errors[at] = f"invalid request: {error}"
        return RowBlock(rows, works, errors, rows.table.nbytes, rows.table.nbytes)

    def part(self, work: Work, start: int, stop: int) -> Work:
        """Return the request itself, which has one row."""
        return work

    def assemble(self, block: RowBlock) -> pa.RecordBatch:
        """Return the lines of the output."""
        replies = {rows[0]: reply for rows, reply in block.results}
        calls = {work.rows[0]: work.payload for work in block.works}
        lines = []
        for row in range(len(block.rows)):
            call, reply = calls.get(row), replies.get(row)
            if reply is not None and reply.status >= _FIRST_FAILED_STATUS:
                block.errors[row] = f"status {reply.status}: {reply.message}"
            failed = block.errors.get(row)
            lines.append(_output_line(call, reply, failed))
        return pa.RecordBatch.from_arrays([pa.array(lines, pa.string())], schema=self.schema)


def _output_line(call: HttpCall | None, reply: HttpReply | None, failed: str | None) -> str:
    custom_id = None if call is None else call.custom_id
    # the same in every run, so that an interrupted job ends with the same bytes
    digest = hashlib.sha256((custom_id or "").encode()).hexdigest()[:24]
    line: dict[str, Any] = {
        "id": f"batch_req_{digest}",
        "custom_id": custom_id,
        "response": None,
        "error": None,
    }
    if reply is not None:
        line["response"] = {
            "status_code": reply.status, "request_id": reply.request_id, "body": reply.body
        }  # fmt: skip
    if failed is not None and reply is None:
        line["error"] = {"code": "request_failed", "message": failed}
    return msgspec.json.encode(line).decode()
