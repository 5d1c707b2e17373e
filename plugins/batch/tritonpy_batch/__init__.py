"""The command `tritonpy batch`: runs a model over files, exactly once, with resume after a crash.

Plugin discovery imports this module only; `run_batch` is the Python API. `inputs` reads files,
`binding` turns rows into tensors, `job` runs everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import hookimpl

if TYPE_CHECKING:
    from tritonpy_batch.adapters import make_predict_fn, predict
    from tritonpy_batch.job import run_batch
    from tritonpy_batch.options import BatchOptions, InvalidJob, JobFailed
    from tritonpy_batch.summary import JobSummary

__all__ = [
    "BatchOptions",
    "InvalidJob",
    "JobFailed",
    "JobSummary",
    "make_predict_fn",
    "predict",
    "run_batch",
]

_MODULES = {
    "BatchOptions": "options",
    "InvalidJob": "options",
    "JobFailed": "options",
    "JobSummary": "summary",
    "make_predict_fn": "adapters",
    "predict": "adapters",
    "run_batch": "job",
}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"batch": "tritonpy_batch.command:BatchCommand"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(f"tritonpy_batch.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
