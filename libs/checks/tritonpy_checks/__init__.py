"""Interfaces of lint rules (`lint`) and of checks of a machine (`doctor`).

Plugins register them under the hooks `tritonpy_lint_rules` and `tritonpy_doctor_checks`. The
package may import `tritonpy_config` and `tritonpy_protos`.
"""

from __future__ import annotations

from tritonpy_checks.doctor import CheckResult, CheckStatus, DoctorCheck, DoctorContext
from tritonpy_checks.edits import remove_field, rename_field, replace_value
from tritonpy_checks.lint import (
    Change,
    Edit,
    Finding,
    Fix,
    Level,
    LintModel,
    LintRule,
    Machine,
    Move,
    NewFolder,
    Problem,
)

__all__ = [
    "Change",
    "CheckResult",
    "CheckStatus",
    "DoctorCheck",
    "DoctorContext",
    "Edit",
    "Finding",
    "Fix",
    "Level",
    "LintModel",
    "LintRule",
    "Machine",
    "Move",
    "NewFolder",
    "Problem",
    "remove_field",
    "rename_field",
    "replace_value",
]
