"""The options of a batch job and its errors."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from tritonpy import StartupError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)?", re.IGNORECASE)
_UNITS = {
    "": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
}  # fmt: skip
DEFAULT_MEMORY = 1 << 30
LEAST_MEMORY = 16 << 20
DEFAULT_SHARD_BYTES = 64 << 20
ALL_COLUMNS = "*"


class InvalidJob(Exception):
    """The options do not fit each other, the inputs or the model."""


class JobFailed(StartupError):
    """A job that ended early; what it committed stays, and the same command resumes it."""


class BatchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to run over which files, and how; an empty text or 0 selects the default.

    `inputs` are URLs of files or folders, or patterns. `output` is the URL of a folder. `columns`
    maps inputs of the model to columns. The model comes from one of `repository`, `server_yaml` and
    `url`; without any, from the folder `models`. Sizes are in bytes.
    """

    model: str
    inputs: tuple[str, ...]
    output: str
    version: int = -1
    repository: str = ""
    server_yaml: str = ""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    ca_file: str = ""
    input_format: str = ""
    output_format: Literal["parquet", "jsonl", "npy", "npz"] = "parquet"
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    keep: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    top: int = 0
    nulls: Literal["fail", "skip", "default"] = "fail"
    allow_rounding: bool = False
    strings: Literal["text", "binary"] = "text"
    image_scale: Literal["none", "unit", "inception", "imagenet"] = "unit"
    batch_size: int = 0
    concurrency: int = 0
    memory: int = DEFAULT_MEMORY
    shard_bytes: int = DEFAULT_SHARD_BYTES
    share: tuple[int, int] = (1, 1)
    on_error: Literal["skip", "fail"] = "skip"
    max_errors: str = "1%"
    retries: int = 3
    reconnect_s: float = 60.0
    lease_s: float = 60.0
    force: bool = False
    command: str = ""


def check_options(options: BatchOptions) -> None:
    """Raise InvalidJob for values that cannot work."""
    number, count = options.share
    sources = [options.repository, options.server_yaml, options.url]
    problems = [
        (not options.inputs, "no input: give --input URL"),
        (not options.output, "no output: give --output FOLDER"),
        (sum(map(bool, sources)) > 1, "give one of --model-repository, --config and -u"),
        (not 1 <= number <= count, f"--shard {number}/{count}: the first is from 1 to {count}"),
        (options.memory < LEAST_MEMORY, "--memory: at least 16 MiB"),
        (options.shard_bytes < 1, f"--shard-size {options.shard_bytes}: at least 1 byte"),
        (options.batch_size < 0, f"--batch-size {options.batch_size}: at least 1"),
        (options.concurrency < 0, f"--concurrency {options.concurrency}: at least 1"),
        (options.retries < 0, f"--retries {options.retries}: at least 0"),
        (options.top < 0, f"--top {options.top}: at least 1"),
    ]  # fmt: skip
    for wrong, text in problems:
        if wrong:
            raise InvalidJob(text)
    allowed_errors(options.max_errors)


def allowed_errors(text: str) -> tuple[float, bool]:
    """Return the limit `1%` or `20` as a number, and whether it is a share of the rows.

    Raises InvalidJob for any other text.
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) if percent else int(number)
    except ValueError:
        value = -1
    if rest or value < 0:
        raise InvalidJob(f"--max-errors {text}: expected a number of rows, or a share such as 1%")
    return (value / 100, True) if percent else (value, False)


def parse_size(text: str) -> int:
    """Return a size such as `512MiB` in bytes. Raises InvalidJob."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise InvalidJob(f"'{text}' is no size: expected a number with KiB, MiB or GiB")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])
