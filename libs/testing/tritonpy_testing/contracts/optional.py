"""Contract tests that apply only to plugins with a certain attribute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Condition = Callable[[Any], bool]  # called with the class derived from a contract
Test = TypeVar("Test", bound=Callable[..., None])


def only_if(condition: Condition) -> Callable[[Test], Test]:
    """Mark a test of a contract: only derived classes that meet `condition` have it."""

    def mark(test: Test) -> Test:
        test.__dict__["only_if"] = condition
        return test

    return mark


def given(name: str) -> Condition:
    """Return the condition that a derived class sets the attribute `name` of a contract."""

    def condition(contract: Any) -> bool:
        values = [vars(each)[name] for each in contract.__mro__ if name in vars(each)]
        return bool(values[0] != values[-1])

    return condition


class OptionalTests:
    """The base class of contracts, which removes tests whose condition is not met.

    Such a test is None in the derived class, which pytest does not collect. Classes derived from it
    may meet the condition and then have the test.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in dir(cls):
            if name.startswith("test_") and name not in vars(cls):
                test = next(
                    vars(each)[name] for each in cls.__mro__ if vars(each).get(name) is not None
                )
                condition = getattr(test, "only_if", None)
                if condition is not None:
                    setattr(cls, name, test if condition(cls) else None)
