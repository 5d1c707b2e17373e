"""Files as rows: finds them, cuts them into shards, and reads each format.

Start at `open_format`; `files` lists URLs, `shards` plans the work. The package imports `rows` and
`options` of the plugin, and nothing of the server.
"""

from __future__ import annotations

from tritonpy_batch.inputs.files import InputFile, list_files
from tritonpy_batch.inputs.input_format import InputFormat
from tritonpy_batch.inputs.registry import open_format
from tritonpy_batch.inputs.shards import FileRange, Shard, plan_shards

__all__ = [
    "FileRange",
    "InputFile",
    "InputFormat",
    "Shard",
    "list_files",
    "open_format",
    "plan_shards",
]
