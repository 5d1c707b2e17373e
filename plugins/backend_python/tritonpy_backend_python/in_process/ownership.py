"""Detection of other references to an array's memory."""

from __future__ import annotations

from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np


def has_other_references(holder: Any, attribute: str) -> bool:
    """Return true if anything besides `holder`'s attribute may reach the memory of its array.

    That can be other references, views, or owners that are not arrays.
    """
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


# The count in this version of Python.
_ALONE = _references(SimpleNamespace(array=np.empty(1)), "array")
