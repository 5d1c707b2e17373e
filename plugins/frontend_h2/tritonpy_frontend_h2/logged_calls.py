"""Calls on HTTP/2 streams with request logging."""

from __future__ import annotations

from tritonpy_frontend_grpc.wire.logged_calls import LoggedInferCall, LoggedTaskCall
from tritonpy_frontend_h2.infer_call import H2InferCall
from tritonpy_frontend_h2.task_call import H2TaskCall


class LoggedH2TaskCall(LoggedTaskCall, H2TaskCall):
    """A call of any method except ModelInfer."""


class LoggedH2InferCall(LoggedInferCall, H2InferCall):
    """A call of ModelInfer."""
