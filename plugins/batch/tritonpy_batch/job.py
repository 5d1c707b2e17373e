"""A job: its plan, what it has in common with an earlier run, and the run itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from tritonpy_batch.binding import Binding, bind
from tritonpy_batch.conversion import ConversionRules
from tritonpy_batch.inputs import (
    InputFile,
    InputFormat,
    Shard,
    list_files,
    open_format,
    plan_shards,
)
from tritonpy_batch.inputs.registry import OPENAI
from tritonpy_batch.job_folder import JobFolder, Store
from tritonpy_batch.model_interface import ModelInterface
from tritonpy_batch.options import BatchOptions, InvalidJob, check_options
from tritonpy_batch.output_table import OutputColumn
from tritonpy_batch.part_writer import WRITERS, LinesPart, PartWriter, check_output_format
from tritonpy_batch.progress import NoProgress, ProgressView
from tritonpy_batch.rows import SourceRows
from tritonpy_batch.run import JobRun
from tritonpy_batch.summary import JobSummary
from tritonpy_batch.targets import JobTarget, open_model, open_requests
from tritonpy_batch.tasks import RequestTask, Task, TensorTask

_BLOCK_BYTES = 2 << 20
_BLOCKS_IN_MEMORY = 32
_MAX_BLOCK_BATCHES = 64
_JOB, _PLAN = "job.json", "plan.json"


class JobDocument(msgspec.Struct, frozen=True):
    """Everything that decides the bytes of the output."""

    model: str
    version: str
    config_digest: str
    input_format: str
    output_format: str
    batch_size: int
    block_rows: int
    block_bytes: int
    shard_bytes: int
    settings: dict[str, Any]
    columns: str
    files: list[InputFile]


class JobPlan(msgspec.Struct):
    """What runs: the task and where it goes, and how files are read and parts are written."""

    document: JobDocument
    reader: InputFormat
    task: Task
    target: JobTarget
    writer: type[PartWriter]
    interface: ModelInterface | None = None
    binding: Binding | None = None

    @property
    def files(self) -> list[InputFile]:
        """The input."""
        return self.document.files

    def shards(self) -> list[Shard]:
        """Cut the files into shards."""
        return plan_shards(self.files, self.reader, self.document.shard_bytes)

    def rows(self, shard: Shard) -> Iterator[SourceRows]:
        """Yield the rows of a shard as they are stored."""
        for piece in shard.pieces:
            yield from self.reader.read(self.files[piece.file], piece.start, piece.stop)


def run_batch(options: BatchOptions, view: ProgressView | None = None) -> JobSummary:
    """Run a job, or what an earlier run of it left, and return what it did.

    Raises InvalidJob if the options fit neither each other, nor the inputs, the model or the
    earlier run, JobFailed if it ends early, and StartupError if the model cannot be loaded.
    """
    check_options(options)
    store = Store(options.output)
    with ExitStack() as stack:
        plan = prepare(options, stack)
        job_folder = JobFolder(store, plan.document.output_format, options.lease_s)
        if options.force:
            job_folder.discard()
        store.remove_scratch()
        shards = _agreed_shards(plan, job_folder)
        run = JobRun(plan, shards, job_folder, options, view or NoProgress())
        return run.run()


def prepare(options: BatchOptions, stack: ExitStack) -> JobPlan:
    """Return the plan of a job, with a loaded model. Raises as `run_batch`."""
    files = list_files(options.inputs)
    block_bytes = max(min(_BLOCK_BYTES, options.memory // _BLOCKS_IN_MEMORY), 1 << 16)
    kind, reader = open_format(files, options.input_format, block_bytes)
    if kind == OPENAI:
        return _prepare_requests(options, stack, files, kind, reader, block_bytes)
    target = stack.enter_context(open_model(options))
    interface = target.interface()
    binding = bind(interface, reader.schema(files[0]), reader.typed, options)
    reader.select(binding.schema)
    outputs = _outputs(interface, options)
    batch_size = interface.max_batch_size or 1
    if options.batch_size:
        if options.batch_size > batch_size:
            raise InvalidJob(
                f"--batch-size {options.batch_size}: model '{interface.name}' takes at most "
                f"{batch_size} rows"
            )
        batch_size = options.batch_size
    rules = ConversionRules(
        options.nulls, options.allow_rounding or not reader.typed, options.image_scale
    )
    task = TensorTask(interface, binding, outputs, rules, batch_size)
    target.use(task, {each.spec.name: each.top for each in outputs})
    check_output_format(options.output_format, task.schema, options.on_error)
    document = JobDocument(
        interface.name, interface.version, interface.config_digest, kind, options.output_format,
        batch_size, _block_rows(reader, files[0], batch_size, block_bytes), block_bytes,
        options.shard_bytes, _settings(options), str(binding.schema), files,
    )  # fmt: skip
    writer = WRITERS[options.output_format]
    return JobPlan(document, reader, task, target, writer, interface, binding)


def _prepare_requests(
    options: BatchOptions,
    stack: ExitStack,
    files: list[InputFile],
    kind: str,
    reader: InputFormat,
    block_bytes: int,
) -> JobPlan:
    if options.columns or options.keep or options.outputs or options.top:
        raise InvalidJob(
            "OpenAI requests have no columns: leave out --map, --keep, --outputs, --top"
        )
    target = stack.enter_context(open_requests(options))
    document = JobDocument(
        options.model, "", "", kind, "jsonl", 1, _MAX_BLOCK_BATCHES, block_bytes,
        options.shard_bytes, _settings(options), "", files,
    )  # fmt: skip
    return JobPlan(document, reader, RequestTask(), target, LinesPart)


def _settings(options: BatchOptions) -> dict[str, Any]:
    """Return the options that decide what is written."""
    return {
        "--map": [list(map(str, (name, *columns))) for name, columns in options.columns],
        "--keep": list(options.keep),
        "--outputs": list(options.outputs),
        "--top": options.top,
        "--nulls": options.nulls,
        "--allow-rounding": options.allow_rounding,
        "--strings": options.strings,
        "--image-scale": options.image_scale,
        "--on-error": options.on_error,
    }


def _outputs(model: ModelInterface, options: BatchOptions) -> list[OutputColumn]:
    known = {spec.name: spec for spec in model.outputs}
    for name in options.outputs:
        if name not in known:
            raise InvalidJob(
                f"--outputs {name}: model '{model.name}' has no such output; it has "
                f"{', '.join(known)}"
            )
    names = options.outputs or tuple(known)
    clashing = set(names) & set(options.keep)
    if clashing:
        raise InvalidJob(
            f"'{min(clashing)}' is an output and a kept column: leave one out with --outputs or "
            "--keep"
        )
    return [OutputColumn(known[name], options.top, options.strings == "binary") for name in names]


def _block_rows(reader: InputFormat, file: InputFile, batch_size: int, block_bytes: int) -> int:
    """Return how many rows are converted together: whole batches of about `block_bytes`."""
    ranges = reader.split(file, block_bytes)
    first = next((rows for each in ranges[:1] for rows in reader.read(file, *each[:2])), None)
    row_bytes = 1 if first is None else max(first.table.nbytes // max(len(first), 1), 1)
    batches = block_bytes // (row_bytes * batch_size)
    return batch_size * min(max(batches, 1), _MAX_BLOCK_BATCHES)


def _agreed_shards(plan: JobPlan, job_folder: JobFolder) -> list[Shard]:
    """Return the shards of the job in the output folder, which begins with this run if it is new.

    Raises InvalidJob if that job is another one.
    """
    content = job_folder.load_document(_JOB)
    if content is None:
        if job_folder.done():
            raise InvalidJob(
                "the output folder has parts of an unknown job: choose another, or --force"
            )
        shards = plan.shards()
        job_folder.create_document(_PLAN, msgspec.json.encode(shards))
        job_folder.create_document(_JOB, msgspec.json.encode(plan.document))
        content = job_folder.load_document(_JOB)
    if content is None:
        raise InvalidJob("the output folder does not keep what is written into it")
    differences = _differences(msgspec.json.decode(content, type=JobDocument), plan.document)
    if differences:
        raise InvalidJob(
            "the output folder has another job: "
            + "; ".join(differences)
            + "; choose another folder, or discard its results with --force"
        )
    return msgspec.json.decode(job_folder.load_document(_PLAN) or b"[]", type=list[Shard])


def _differences(earlier: JobDocument, present: JobDocument) -> list[str]:
    found = []
    old, new = ({file.url: file for file in each.files} for each in (earlier, present))
    for text, urls in (
        ("new input", new.keys() - old.keys()),
        ("input missing", old.keys() - new.keys()),
        ("input changed", {url for url in old.keys() & new.keys() if old[url] != new[url]}),
    ):
        if urls:
            more = f" and {len(urls) - 1} more" if len(urls) > 1 else ""
            found.append(f"{text}: {min(urls)}{more}")
    for name in ("model", "version", "config_digest", "output_format", "batch_size", "shard_bytes"):
        if getattr(earlier, name) != getattr(present, name):
            label = (
                "the model's configuration" if name == "config_digest" else name.replace("_", " ")
            )
            found.append(f"{label} was {getattr(earlier, name)}, is {getattr(present, name)}")
    for name, value in present.settings.items():
        if earlier.settings.get(name) != value:
            found.append(f"{name} was {earlier.settings.get(name)}, is {value}")
    for name in ("input_format", "columns", "block_rows", "block_bytes"):
        if not found and getattr(earlier, name) != getattr(present, name):
            found.append(f"{name.replace('_', ' ')}: a different --memory or a different release?")
    return found
