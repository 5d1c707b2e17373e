"""The contract of sharing policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy import InferRequest, ResourceExhausted
from tritonpy.config import decode_options
from tritonpy.metrics import CustomMetrics, ModelMetrics
from tritonpy.scheduling import Sharing
from tritonpy_testing.contracts.plugin import PluginContract
from tritonpy_testing.recording_sink import RecordingSink


class SharingContract(PluginContract):
    """The contract of `Sharing`.

    Set `plugin_class`, and `options` that admit at least one request.
    """

    interface = Sharing
    hook = "tritonpy_sharings"
    options: ClassVar[Mapping[str, Any]] = {}

    def make(self) -> Sharing:
        """Return a new sharing policy."""
        options = decode_options(self.plugin_class.Options, dict(self.options), "")
        sharing = self.plugin_class(options, ModelMetrics(CustomMetrics()))
        assert isinstance(sharing, Sharing)
        return sharing

    def test_header_names_are_in_lower_case(self) -> None:
        headers = self.make().headers()
        assert all(name == name.lower() != "" for name in headers), (
            "header names are compared in lower case"
        )

    def test_a_request_is_admitted_and_ends(self) -> None:
        sharing, request = self.make(), _request()
        sharing.admit(request)
        sharing.ended(request)

    def test_a_refusal_has_a_retry_time(self) -> None:
        sharing = self.make()
        try:
            for _ in range(1000):
                sharing.admit(_request())
        except ResourceExhausted as error:
            assert (error.retry_after_s or 0) > 0, "the refusal has no time for a retry"

    def test_a_queue_returns_its_requests(self) -> None:
        line = self.make().new_queue()
        requests = [_request() for _ in range(20)]
        line.extend(requests)
        line.remove(requests[3])
        order = list(line)
        assert len(line) == len(order) == 19
        assert requests[3] not in line
        assert requests[4] in line
        assert [line.popleft() for _ in order] == order, (
            "the queue's iteration order differs from its execution order"
        )
        line.append(requests[0])
        line.clear()
        assert list(line) == []

    def test_queues_of_several_levels_are_independent(self) -> None:
        sharing = self.make()
        one, other = sharing.new_queue(), sharing.new_queue()
        one.append(_request())
        assert len(other) == 0


def _request() -> InferRequest:
    return InferRequest("model", {}, RecordingSink().sink)
