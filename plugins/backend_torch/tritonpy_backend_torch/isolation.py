"""Which models run in processes of their own. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy_backend_torch.archive import Form
from tritonpy_backend_torch.settings import COMPILE

# Code of others, and compiled code: PyTorch keeps the interpreter's lock while the latter runs on the processor, and with it the whole server.
_ALONE = frozenset({Form.PYTHON, Form.PICKLE, Form.AOTI})


def isolation_for(form: Form, parameters: Mapping[str, str]) -> str:
    """Return "process" or "thread": what the parameters say, or else what suits a model of this form."""
    alone = form in _ALONE or COMPILE in parameters
    return parameters.get("isolation", "process" if alone else "thread")
