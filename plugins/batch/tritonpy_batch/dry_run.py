"""A job without output: the mapping of columns, three rows through the model, and an estimate."""

from __future__ import annotations

import queue
import time
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from tritonpy import TritonError
from tritonpy_batch.inputs.registry import OPENAI
from tritonpy_batch.job import JobPlan, prepare
from tritonpy_batch.options import BatchOptions, InvalidJob, JobFailed, check_options
from tritonpy_batch.output_table import ATTEMPTS, ERROR
from tritonpy_batch.rows import SourceRows, regroup
from tritonpy_batch.summary import size_text
from tritonpy_types import shape_text

_ROWS = 3
_MEASURED_BATCHES = 5
_MAX_TEXT = 60
Answers = queue.SimpleQueue[tuple[Any, TritonError | None]]


def dry_run(options: BatchOptions) -> str:
    """Return a text that shows what the job would do. Raises as `run_batch`."""
    check_options(options)
    with ExitStack() as stack:
        plan = prepare(options, stack)
        shards = plan.shards()
        if not shards:
            raise InvalidJob("the inputs have no rows")
        first = next(regroup(plan.rows(shards[0]), plan.task.batch_size), None)
        if first is None:
            raise InvalidJob(f"{plan.files[0].url} has no rows")
        total = sum(shard.nbytes for shard in shards)
        lines = [
            f"{len(plan.files):,} files ({plan.document.input_format}), {size_text(total)}",
            f"{len(shards):,} parts of {plan.document.output_format} in {options.output}",
            *_mapping(plan, options),
            "",
            *_sample(plan, first),
        ]
        if plan.document.input_format != OPENAI:
            lines += ["", *_estimate(plan, first, total)]
        return "\n".join(lines) + "\n"


def _mapping(plan: JobPlan, options: BatchOptions) -> list[str]:
    if plan.binding is None or plan.interface is None:
        return ["each line is a request of OpenAI's batch format"]
    rows = []
    for each in plan.binding.inputs:
        kind = plan.binding.schema.field(each.columns[0]).type
        columns = each.columns[0] if len(each.columns) == 1 else f"{len(each.columns)} columns"
        how = f", decoded as an image, scale {options.image_scale}" if each.image else ""
        rows.append(
            f"  input {each.spec.name} {each.spec.datatype}{shape_text(each.spec.dims)} "
            f"from {columns} ({kind}{how})"
        )
    rows += [f"  kept {name}" for name in plan.binding.kept]
    outputs = [
        field for field in plan.task.schema
        if field.name not in {*plan.binding.kept, ERROR, ATTEMPTS}
    ]  # fmt: skip
    rows += [f"  output {field.name} ({field.type})" for field in outputs]
    return [f"model {plan.interface.name}, batches of {plan.task.batch_size}", *rows]


def _sample(plan: JobPlan, rows: SourceRows) -> list[str]:
    few = next(regroup([rows], min(_ROWS, len(rows))))
    table = _run(plan, few)
    lines = []
    for at, row in enumerate(table.to_pylist()):
        lines.append(few.place(at))
        for name, value in row.items():
            if (name == ERROR and value is None) or name == ATTEMPTS:
                continue
            lines.append(f"  {name}: {_short(value)}")
    return lines


def _estimate(plan: JobPlan, rows: SourceRows, total: int) -> list[str]:
    table = _run(plan, rows)  # the first batch may be slow
    started = time.perf_counter()
    for _ in range(_MEASURED_BATCHES):
        table = _run(plan, rows)
    seconds = (time.perf_counter() - started) / _MEASURED_BATCHES / len(rows)
    known = [plan.reader.count_rows(file) for file in plan.files]
    count = int(total / max(rows.table.nbytes / len(rows), 1))
    if None not in known:
        count = sum(number or 0 for number in known)
    size = count * table.nbytes / len(rows)
    rate = f"{1 / seconds:,.0f} rows/s with one request at a time"
    return [
        f"about {count:,} rows in {seconds * count:,.1f} s: {rate}",
        f"about {size_text(size)} of output before compression",
    ]


def _run(plan: JobPlan, rows: SourceRows) -> pa.RecordBatch:
    block = plan.task.prepare(rows)
    for work in block.works:
        answers: Answers = queue.SimpleQueue()
        plan.target.submit(work, partial(_put, answers))
        result, error = answers.get()
        if error is not None:
            raise JobFailed(f"{rows.place(work.rows[0])}: {error.message}")
        block.results.append((work.rows, result))
    return plan.task.assemble(block)


def _put(answers: Answers, result: Any, error: TritonError | None) -> None:
    answers.put((result, error))


def _short(value: Any) -> str:
    text = (
        msgspec.json.encode(value, enc_hook=str).decode() if not isinstance(value, str) else value
    )
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
