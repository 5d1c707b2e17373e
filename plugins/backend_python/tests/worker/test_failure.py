from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType

import pytest

from tritonpy_worker.failure import ModelContractError, describe_error, failure_prefix


@pytest.fixture
def caught(tmp_path: Path):
    """Return a function that runs code like a model's file and describes its exception."""

    def run(code: str) -> str:
        file = tmp_path / "model.py"
        file.write_text(code)
        module = ModuleType("model")
        try:
            exec(compile(code, str(file), "exec"), vars(module))  # noqa: S102 - it is the test's own
        except BaseException as error:
            return describe_error(error).replace(str(file), "model.py")
        raise AssertionError("nothing was raised")

    return run


def test_the_innermost_frame_is_first(caught) -> None:
    text = caught(
        "def inner():\n    raise ValueError('no')\n\ndef outer():\n    inner()\n\nouter()\n"
    )
    assert text.startswith(
        "ValueError: no\n\nAt:\n  model.py(2): inner\n  model.py(5): outer\n  model.py(7): <module>\n"
    )


def test_lines_are_the_last_executed_ones(caught) -> None:
    # As in Triton: the last executed line of a frame, not the line that the exception passed.
    text = caught(
        "def f():\n    try:\n        raise KeyError('a')\n    finally:\n        x = 1\n        y = 2\n\nf()\n"
    )
    assert "model.py(6): f\n" in text or "model.py(3): f\n" in text


@pytest.mark.parametrize(
    ("raised", "beginning"),
    [
        ("ValueError()", "ValueError: <EMPTY MESSAGE>\n"),
        ("KeyError('missing')", "KeyError: 'missing'\n"),
        ("SystemExit(3)", "SystemExit: 3\n"),
        ("ValueError('a\\nb\\n')", "ValueError: a\nb\n\n\nAt:\n"),
        ("ValueError('\\ud800')", "ValueError: \\ud800\n"),
        (
            "type('Own', (Exception,), {'__str__': lambda self: 1 / 0})()",
            "Own: <MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>\n",
        ),
    ],
)
def test_messages_have_tritons_format(caught, raised: str, beginning: str) -> None:
    assert caught(f"raise {raised}\n").startswith(beginning)


def test_causes_and_notes_are_omitted(caught) -> None:
    text = caught(
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('own') from error\n"
    )
    assert text.startswith("ValueError: own\n\nAt:\n")
    assert "Zero" not in text


def test_frames_of_the_runtime_are_omitted(caught) -> None:
    text = caught(
        "from tritonpy_worker.api.tensor import Tensor\ndef f():\n    Tensor('x', 1)\n\nf()\n"
    )
    assert "model.py(3): f\n" in text
    assert "tritonpy_worker" not in text


def test_a_coroutine_only_has_its_own_frame() -> None:
    async def inner() -> None:
        raise ValueError("deep")

    async def outer() -> None:
        await inner()

    with pytest.raises(ValueError, match="deep") as caught:
        asyncio.run(outer())
    assert describe_error(caught.value).count("test_failure.py") == 1
    assert ": inner\n" in describe_error(caught.value)


def test_contract_errors_are_text_only() -> None:
    assert describe_error(ModelContractError("no such thing")) == "no such thing"


def test_an_exception_that_was_not_raised_has_no_frames() -> None:
    assert describe_error(ValueError("x")) == "ValueError: x"


def test_the_error_of_a_batch_names_the_instance() -> None:
    assert (
        failure_prefix("m_0_0") == "Failed to process the request(s) for model 'm_0_0', message: "
    )
