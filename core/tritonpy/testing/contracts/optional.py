"""Tests of a contract that exist only where there is something to check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Condition = Callable[[Any], bool]  # takes the class derived from a contract
Test = TypeVar("Test", bound=Callable[..., None])


def only_where(condition: Condition) -> Callable[[Test], Test]:
    """Mark a test of a contract: it exists in those derived classes alone that meet `condition`."""

    def mark(test: Test) -> Test:
        test.__dict__["only_where"] = condition
        return test

    return mark


def given(name: str) -> Condition:
    """Return the condition that an author gave or overrode the attribute `name` of a contract."""

    def condition(contract: Any) -> bool:
        values = [vars(each)[name] for each in contract.__mro__ if name in vars(each)]
        return bool(values[0] != values[-1])

    return condition


class OptionalTests:
    """Base of the contracts: a test whose condition is not met is None in a derived class, which pytest does not collect.

    A class derived further may meet the condition and has the test then.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in dir(cls):
            if name.startswith("test_") and name not in vars(cls):
                test = next(vars(each)[name] for each in cls.__mro__ if vars(each).get(name) is not None)
                condition = getattr(test, "only_where", None)
                if condition is not None:
                    setattr(cls, name, test if condition(cls) else None)
