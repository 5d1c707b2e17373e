"""Connections whose inference calls are written in a dialect."""

from __future__ import annotations

from collections.abc import Mapping

from tritonpy import TritonError
from tritonpy_http_api.access import HttpAccess
from tritonpy_http_api.dialect import Dialect
from tritonpy_http_api.encode import encode_error
from tritonpy_http_api.guarded_protocol import GuardedProtocol
from tritonpy_http_api.infer_calls import InferCalls, Target
from tritonpy_http_api.infer_cycle import InferCycle


class DialectProtocol(GuardedProtocol):
    """A connection that translates its inference calls."""

    dialect: Dialect

    def find_target(self) -> Target | None:
        """Return the target of an inference call."""
        path = self.url.partition(b"?")[0].decode("latin-1")
        return self.dialect.infer_target(path, dict(self.headers))

    def make_cycle(
        self, target: Target, headers: Mapping[bytes, bytes], keep_alive: bool, started_ns: int
    ) -> InferCycle:
        """Return the cycle of a call, refused if its headers are wrong."""
        refusal = None
        try:
            headers = self.dialect.translate_headers(headers)
        except TritonError as error:
            refusal = encode_error(error)
        cycle = super().make_cycle(target, headers, keep_alive, started_ns)
        cycle.translate = self.dialect.translate_response
        cycle.refusal = refusal
        return cycle


def dialect_protocol(
    calls: InferCalls, access: HttpAccess | None, dialect: Dialect
) -> type[DialectProtocol]:
    """Return the connection class, bound to the calls of a frontend."""
    return type(
        "DialectProtocol",
        (DialectProtocol,),
        {"calls": calls, "heads": None, "access": access, "dialect": dialect},
    )
