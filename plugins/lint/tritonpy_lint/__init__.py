"""The commands lint, explain, init and diff, and the rules of lint.

Plugin discovery imports this module only. Start at `linting`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import hookimpl

_RULES = {
    "layout": {
        "F001": "VersionFolder",
        "F002": "ModelFileName",
        "F003": "NameDiffers",
        "F005": "Placeholders",
        "F006": "Syntax",
        "F007": "UnknownField",
        "F008": "WrongValue",
        "F009": "BrokenModelFile",
        "F010": "OutsideFolder",
        "F011": "NotAModel",
        "F012": "LeadingZeros",
        "G001": "OtherProblem",
    },
    "tensors": {
        "S001": "BatchDimension",
        "S002": "FixedBatch",
        "S003": "EmptyReshape",
        "S005": "ReshapeSize",
        "S006": "InvalidTensor",
        "S007": "OtherShape",
        "T001": "DataTypeDiffers",
        "T002": "NameUnknown",
        "T003": "MissingInput",
    },
    "backends": {
        "B001": "PlatformOrBackend",
        "B002": "BackendMissing",
        "B003": "MisspelledParameter",
        "I001": "Devices",
        "I002": "NoGpuUsed",
        "I003": "TooManyInstances",
        "I004": "PythonEnvironment",
        "I005": "GroupCountZero",
        "P001": "PythonModelCode",
        "P003": "ExecuteMissing",
        "P004": "ImportMissing",
    },
    "scheduling": {
        "C001": "UnusableCache",
        "D001": "NoBatching",
        "D002": "PreferredSizes",
        "D003": "QueueDelay",
        "D005": "DynamicBatching",
        "E001": "EnsembleGraph",
        "E002": "EnsembleTensors",
        "E003": "MissingMember",
        "E004": "MemberFails",
        "Q001": "SequenceBatching",
        "V001": "Versions",
    },
    "data_files": {
        "F004": "Labels",
        "M001": "MemoryExceeded",
        "Q002": "InitialState",
        "W001": "Warmup",
        "X001": "SecretParameter",
        "X002": "WritableFolder",
        "X003": "PickleFile",
    },
}


@hookimpl
def tritonpy_commands() -> Mapping[str, str]:
    """Register the commands."""
    return {
        "diff": "tritonpy_lint.diff_command:DiffCommand",
        "explain": "tritonpy_lint.explain:ExplainCommand",
        "init": "tritonpy_lint.init_command:InitCommand",
        "lint": "tritonpy_lint.command:LintCommand",
    }


@hookimpl
def tritonpy_operations() -> Mapping[str, str]:
    """Register the operation that checks a configuration in a running server."""
    return {"lint": "tritonpy_lint.lint_operation:LintOperations"}


@hookimpl
def tritonpy_lint_rules() -> Mapping[str, str]:
    """Register the rules by code."""
    return {
        code: f"tritonpy_lint.rules.{module}:{name}"
        for module, rules in _RULES.items()
        for code, name in sorted(rules.items())
    }
