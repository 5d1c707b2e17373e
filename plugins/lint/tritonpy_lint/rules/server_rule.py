"""The base of rules for problems that the server reports itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from tritonpy_checks import Edit, Finding, Fix, Level, LintModel, LintRule, Problem

PYTHON_MODEL = """import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"""
TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)


def python_model(config: str, **files: str) -> dict[str, str]:
    """Return the files of a Python model with the configuration `config`."""
    return {"config.pbtxt": config, "1/model.py": PYTHON_MODEL, **files}


GOOD = python_model(f'backend: "python"\nmax_batch_size: 8\ndynamic_batching {{ }}\n{TENSORS}')


class ServerRule(LintRule):
    """A rule whose findings are the server's own problems with its code."""

    level = Level.ERROR
    remedy: ClassVar[str] = ""
    """What to do, unless `advice` knows more."""

    def check(self, model: LintModel) -> Iterator[Finding]:
        """Yield a finding for each problem with this code."""
        for problem in model.problems:
            if problem.code == self.code:
                advice, fix = self.advice(model, problem)
                yield self.finding(
                    model,
                    problem.key,
                    problem.text,
                    advice or self.remedy,
                    fix=fix,
                    file=problem.file,
                    line=problem.line,
                    column=problem.column,
                )

    def advice(self, model: LintModel, problem: Problem) -> tuple[str, Fix | None]:
        """Return what to do about the problem, and a fix if there is one (optional)."""
        return "", None


def edit_fix(title: str, *edits: Edit, safe: bool = True) -> Fix:
    """Return a fix of edits."""
    return Fix(title, edits, safe)
