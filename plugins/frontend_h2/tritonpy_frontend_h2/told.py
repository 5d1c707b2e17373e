"""Calls on streams that are told of in the log when they are over."""

from __future__ import annotations

from tritonpy_frontend_grpc.wire.told import ToldExchange, ToldInferCall
from tritonpy_frontend_h2.exchange import H2Exchange
from tritonpy_frontend_h2.infer_call import H2InferCall


class ToldH2Exchange(ToldExchange, H2Exchange):
    """Any call but ModelInfer."""


class ToldH2InferCall(ToldInferCall, H2InferCall):
    """A call of ModelInfer."""
