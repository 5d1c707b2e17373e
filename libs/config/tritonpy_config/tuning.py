"""Settings of a model that `tritonpy analyze` may search, as backends declare them."""

from __future__ import annotations

from dataclasses import dataclass

Setting = int | float | str | bool
DEFAULT_SETTING = "default"
"""The value of a setting that the configuration does not contain."""


@dataclass(frozen=True, slots=True)
class SearchDimension:
    """A setting and the values to search, in order; `DEFAULT_SETTING` leaves it to the framework.

    `name` is a key of `parameters` in the model configuration. If `changes_output` is set, as for a
    lower precision, it is searched only on request and with a bound for the difference of outputs.
    """

    name: str
    values: tuple[Setting, ...]
    changes_output: bool = False


def thread_counts(cores: int) -> tuple[Setting, ...]:
    """Return numbers of threads to search: the framework's default, powers of 2, and all cores."""
    powers = [1 << power for power in range(12) if 1 << power < cores]
    return (DEFAULT_SETTING, *powers, cores)
