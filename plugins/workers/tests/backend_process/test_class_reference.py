from __future__ import annotations

import sys
from types import ModuleType

import pytest

from core.tests.toys.doubler import Doubler, Gate, gated
from tritonpy.api.backend import Backend
from tritonpy_types.errors import InvalidArgument, Unavailable
from tritonpy_workers.backend_process.class_reference import reference_of, resolve


class Outer:
    class Inner(Doubler):
        pass


def test_a_reference_resolves_to_its_class() -> None:
    for kind in (Doubler, Outer.Inner):
        assert resolve(reference_of(kind, "backend"), "backend") is kind
    assert reference_of(Doubler, "backend") == "core.tests.toys.doubler:Doubler"


def test_a_class_that_no_other_process_can_import_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = ModuleType("__main__")
    main.Mine = type("Mine", (Doubler,), {"__module__": "__main__"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    replaced = type("Doubler", (Backend,), {"__module__": "core.tests.toys.doubler"})
    homeless = type("Homeless", (Backend,), {"__module__": "nowhere"})
    for kind in (gated(Gate()), main.Mine, replaced, homeless):  # type: ignore[attr-defined]
        with pytest.raises(
            InvalidArgument, match=r"the backend class .* cannot run in a process of its own"
        ):
            reference_of(kind, "backend")


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("nowhere:Backend", "ModuleNotFoundError: No module named 'nowhere'"),
        ("core.tests.toys.doubler:Tripler", "does not exist any more"),
        ("core.tests.toys.doubler:Doubler.Inner", "does not exist any more"),
    ],
)
def test_an_unresolvable_reference_raises_with_the_reason(reference: str, reason: str) -> None:
    with pytest.raises(Unavailable) as refusal:
        resolve(reference, "device")
    assert f"the device '{reference}'" in refusal.value.message
    assert reason in refusal.value.message
