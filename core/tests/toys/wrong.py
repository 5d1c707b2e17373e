"""A backend that returns invalid values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritonpy.api.backend import Backend
from tritonpy_types import Batch

GOOD = np.zeros((1, 1), np.float32)
RETURNED: dict[str, Any] = {
    "fine": {"OUT": GOOD, "MORE": GOOD, "EXTRA": GOOD},
    "misspelled": {"OUTT": GOOD, "MORE": GOOD},
    "empty": {},
    "None": None,
    "list": [GOOD],
    "array": GOOD,
    "None inside": {"OUT": None, "MORE": GOOD},
    "uneven": {"OUT": [[1.0], [1.0, 2.0]], "MORE": GOOD},
    "text": {"OUT": "text", "MORE": GOOD},
    "fp64": {"OUT": [[1.0]], "MORE": GOOD},
}
CASES = (
    *RETURNED,
    "KeyError",
    "RuntimeError",
    "execute returns",
    "responds None",
    "responds too little",
)


class Wrong(Backend):
    """IN is the index of one of `CASES`."""

    def execute(self, batch: Batch) -> None:
        case = CASES[int(batch.requests[0].inputs["IN"].numpy()[0, 0])]
        if case == "execute returns":
            return [GOOD]  # type: ignore[return-value]
        if case == "responds None":
            batch.respond(None)  # type: ignore[arg-type]
        elif case == "responds too little":
            batch.respond([])
        else:
            super().execute(batch)
        return None

    def infer(self, inputs: Any) -> Any:
        case = CASES[int(inputs["IN"][0, 0])]
        if case == "KeyError":
            return RETURNED["XX"]
        if case == "RuntimeError":
            raise RuntimeError("it is broken")
        return RETURNED[case]
