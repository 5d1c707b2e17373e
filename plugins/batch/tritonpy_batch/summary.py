"""What a job did, and how fast."""

from __future__ import annotations

import msgspec

from tritonpy_batch.job_folder import PartRecord


class RateSample(msgspec.Struct, frozen=True):
    """Rows finished and requests in flight, `seconds` after the start."""

    seconds: float
    rows: int
    in_flight: int


class JobProgress(msgspec.Struct):
    """Counts of this run; `total_bytes` and `done_bytes` include earlier runs.

    `fill` is the mean share of a full batch, `busy` the share of time in which instances execute.
    """

    total_bytes: int = 0
    done_bytes: int = 0
    total_shards: int = 0
    done_shards: int = 0
    rows: int = 0
    read_bytes: int = 0
    errors: int = 0
    skipped: int = 0
    seconds: float = 0.0
    batches: int = 0
    fill: float = 0.0
    busy: float = 0.0
    in_flight: int = 0

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def bytes_rate(self) -> float:
        """Bytes of rows per second."""
        return self.read_bytes / self.seconds if self.seconds else 0.0


class JobSummary(msgspec.Struct):
    """The result of a job: its parts with their records, and the progress of the last run.

    `resumed` shards were done before. `first_errors` are examples, with file and row.
    """

    model: str
    version: str
    output: str
    command: str
    parts: list[PartRecord]
    progress: JobProgress
    resumed: int = 0
    samples: list[RateSample] = []
    first_errors: list[str] = []

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.rows for part in self.parts)

    @property
    def errors(self) -> int:
        """The rows with an error in all parts."""
        return sum(part.errors for part in self.parts)


def summary_text(summary: JobSummary) -> str:
    """Return the summary for a terminal."""
    progress = summary.progress
    size = sum(part.size for part in summary.parts)
    rates = f"{progress.rate:,.0f} rows/s, {size_text(progress.bytes_rate)}/s"
    batches = f"{progress.batches:,}, {progress.fill:.0%} full; {progress.in_flight} in flight"
    if progress.busy:
        batches += f"; instances busy {progress.busy:.0%} of the time"
    parts = f"{summary.rows:,} rows in {len(summary.parts):,} parts, {size_text(size)}"
    lines = [
        f"{summary.model} {summary.version}: {parts} in {summary.output}",
        f"  this run  {progress.rows:,} rows in {progress.seconds:.1f} s: {rates}",
        f"  batches   {batches}",
    ]
    if summary.resumed:
        lines.append(f"  resumed   {summary.resumed:,} parts were complete before")
    if progress.skipped:
        lines.append(f"  skipped   {progress.skipped:,} rows with null values")
    if summary.errors:
        lines.append(f"  errors    {summary.errors:,} rows have a text in their column _error")
        lines += [f"    {text}" for text in summary.first_errors]
    return "\n".join(lines) + "\n"


def size_text(size: float) -> str:
    """Return a size with its unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
