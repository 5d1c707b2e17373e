"""Whether anybody could still write to an array."""

from __future__ import annotations

from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np


def is_held_elsewhere(holder: Any, attribute: str) -> bool:
    """Say whether more than `holder`'s attribute leads to the memory of the array in it: other references, views, or owners that are no arrays."""
    while _references(holder, attribute) == _ALONE:
        array = getattr(holder, attribute)
        if array.base is None:
            return not array.flags.owndata
        if type(array.base) is not np.ndarray:
            return True
        holder, attribute = array, "base"
    return True


def _references(holder: Any, attribute: str) -> int:
    array = getattr(holder, attribute)
    return getrefcount(array)


_ALONE = _references(SimpleNamespace(array=np.empty(1)), "array")  # how this version of Python counts
