"""Detection of other references to an array's memory."""

from __future__ import annotations

from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np


def has_other_references(holder: Any, attribute: str) -> bool:
    """Return true if anything else than `holder`'s attribute may refer to its array's memory.

    That can be other references, views, or an owner of the memory that is not an array.
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


# The reference count without other references, which depends on Python's version.
_ALONE = _references(SimpleNamespace(array=np.empty(1)), "array")
