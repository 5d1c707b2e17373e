"""Limits of workers, from the backend's options and the model's parameters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tritonpy import InvalidArgument, ModelContext
from tritonpy_backend_python.limits import WorkerLimits, limits_of
from tritonpy_backend_python.options import PythonOptions

OPTIONS = PythonOptions(execution_limit_seconds=2.5, memory_limit=1 << 20)


def model(**parameters: str) -> ModelContext:
    return cast("Any", SimpleNamespace(name="m", parameters=parameters))


def test_without_parameters_the_options_apply() -> None:
    assert limits_of(model(), OPTIONS) == WorkerLimits(2.5, 1 << 20)


def test_a_models_parameters_override_the_options() -> None:
    limited_model = model(EXECUTION_LIMIT_SECONDS="0.5", MEMORY_LIMIT="2GiB")
    assert limits_of(limited_model, OPTIONS) == WorkerLimits(0.5, 2 << 30)
    assert limits_of(model(EXECUTION_LIMIT_SECONDS="0", MEMORY_LIMIT="0"), OPTIONS) == WorkerLimits(
        0.0, 0
    )


@pytest.mark.parametrize("text", ["soon", "-1", "inf", "nan", ""])
def test_an_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"'EXECUTION_LIMIT_SECONDS' is '.*', it must be a number of seconds"
    ):
        limits_of(model(EXECUTION_LIMIT_SECONDS=text), OPTIONS)


@pytest.mark.parametrize("text", ["much", "-1", "2 GiBB", ""])
def test_an_invalid_size_is_rejected(text: str) -> None:
    with pytest.raises(
        InvalidArgument, match=r"'MEMORY_LIMIT' is '.*', it must be a size such as \"2GiB\""
    ):
        limits_of(model(MEMORY_LIMIT=text), OPTIONS)
