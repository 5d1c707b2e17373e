"""Calls through Envoy that are told of in the log when they are over."""

from __future__ import annotations

from tritonpy_frontend_envoy.grpc.exchange import EnvoyExchange
from tritonpy_frontend_envoy.grpc.infer_call import EnvoyInferCall
from tritonpy_frontend_grpc.wire.told import ToldExchange, ToldInferCall


class ToldEnvoyExchange(ToldExchange, EnvoyExchange):
    """Any call but ModelInfer."""


class ToldEnvoyInferCall(ToldInferCall, EnvoyInferCall):
    """A call of ModelInfer."""
