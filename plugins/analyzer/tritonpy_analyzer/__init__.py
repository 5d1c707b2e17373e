"""The command `tritonpy analyze`: finds the best configuration of a model by measuring it.

Plugin discovery imports this module only; `analyze` is the Python API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tritonpy import hookimpl

if TYPE_CHECKING:
    from tritonpy_analyzer.analysis import AnalysisOptions, analyze
    from tritonpy_analyzer.study import Study

__all__ = ["AnalysisOptions", "Study", "analyze"]


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the command."""
    return {"analyze": "tritonpy_analyzer.command:AnalyzeCommand"}


def __getattr__(name: str) -> Any:
    if name in {"AnalysisOptions", "analyze"}:
        from tritonpy_analyzer import analysis

        return getattr(analysis, name)
    if name == "Study":
        from tritonpy_analyzer.study import Study

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
