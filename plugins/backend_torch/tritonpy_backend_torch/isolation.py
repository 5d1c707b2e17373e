"""Pure selection of the models that run in their own processes."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy_backend_torch.archive import ArchiveFormat
from tritonpy_backend_torch.settings import COMPILE

# Formats with user code or compiled code. PyTorch holds the GIL while compiled code runs on the
# CPU, which would block the server.
_ISOLATED_FORMATS = frozenset({ArchiveFormat.PYTHON, ArchiveFormat.PICKLE, ArchiveFormat.AOTI})


def default_isolation(model_format: ArchiveFormat, parameters: Mapping[str, str]) -> str:
    """Return "process" or "thread": the model's parameter, or the default for its format."""
    is_isolated = model_format in _ISOLATED_FORMATS or COMPILE in parameters
    return parameters.get("isolation", "process" if is_isolated else "thread")
