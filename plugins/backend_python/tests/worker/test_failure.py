from __future__ import annotations

import asyncio
from pathlib import Path
from types import ModuleType

import pytest

from tritonpy_worker.failure import Refused, describe, failure_of


@pytest.fixture
def caught(tmp_path: Path):
    """Return a function that runs code as a model's file would be and returns what it raised, described."""

    def run(code: str) -> str:
        file = tmp_path / "model.py"
        file.write_text(code)
        module = ModuleType("model")
        try:
            exec(compile(code, str(file), "exec"), vars(module))  # noqa: S102 - it is the test's own
        except BaseException as error:
            return describe(error).replace(str(file), "model.py")
        raise AssertionError("nothing was raised")

    return run


def test_the_innermost_frame_comes_first(caught) -> None:
    text = caught("def inner():\n    raise ValueError('no')\n\ndef outer():\n    inner()\n\nouter()\n")
    assert text.startswith(
        "ValueError: no\n\nAt:\n  model.py(2): inner\n  model.py(5): outer\n  model.py(7): <module>\n"
    )


def test_the_lines_are_those_that_ran_last(caught) -> None:
    # Like Triton: where a frame was when it was left, not where the exception passed it.
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
def test_messages_are_told_as_triton_tells_them(caught, raised: str, beginning: str) -> None:
    assert caught(f"raise {raised}\n").startswith(beginning)


def test_causes_and_notes_are_left_out(caught) -> None:
    text = caught("try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('own') from error\n")
    assert text.startswith("ValueError: own\n\nAt:\n")
    assert "Zero" not in text


def test_the_runtimes_own_frames_are_left_out(caught) -> None:
    text = caught("from tritonpy_worker.api.tensor import Tensor\ndef f():\n    Tensor('x', 1)\n\nf()\n")
    assert "model.py(3): f\n" in text
    assert "tritonpy_worker" not in text


def test_a_coroutine_shows_its_own_frame_alone() -> None:
    async def inner() -> None:
        raise ValueError("deep")

    async def outer() -> None:
        await inner()

    with pytest.raises(ValueError, match="deep") as caught:
        asyncio.run(outer())
    assert describe(caught.value).count("test_failure.py") == 1
    assert ": inner\n" in describe(caught.value)


def test_what_the_runtime_refuses_is_text_alone() -> None:
    assert describe(Refused("no such thing")) == "no such thing"


def test_an_exception_that_was_never_raised_has_no_places() -> None:
    assert describe(ValueError("x")) == "ValueError: x"


def test_the_error_of_a_batch_names_the_instance() -> None:
    assert failure_of("m_0_0") == "Failed to process the request(s) for model 'm_0_0', message: "
