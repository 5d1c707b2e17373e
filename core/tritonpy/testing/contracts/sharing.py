"""The contract of ways of sharing a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tritonpy.api.sharing import Sharing
from tritonpy.config.server import decode_options
from tritonpy.custom_metrics import CustomMetrics, ModelMetrics
from tritonpy.errors import ResourceExhausted
from tritonpy.testing.contracts.plugin import PluginContract
from tritonpy.testing.witness import Witness
from tritonpy.types import InferRequest


class SharingContract(PluginContract):
    """What `Sharing` promises. Give `plugin_class` and `options`, which let at least one request in."""

    interface = Sharing
    hook = "tritonpy_sharings"
    options: ClassVar[Mapping[str, Any]] = {}

    def make(self) -> Sharing:
        """Return a new one."""
        options = decode_options(self.plugin_class.Options, dict(self.options), "")
        sharing = self.plugin_class(options, ModelMetrics(CustomMetrics()))
        assert isinstance(sharing, Sharing)
        return sharing

    def test_the_headers_that_it_reads_are_named_as_requests_name_them(self) -> None:
        headers = self.make().headers()
        assert all(name == name.lower() != "" for name in headers), "names of headers are compared in lower case"

    def test_a_request_is_let_in_and_ends(self) -> None:
        sharing, request = self.make(), _request()
        sharing.admit(request)
        sharing.ended(request)

    def test_a_refusal_says_when_to_come_again(self) -> None:
        sharing = self.make()
        try:
            for _ in range(1000):
                sharing.admit(_request())
        except ResourceExhausted as error:
            assert (error.retry_after_s or 0) > 0, "a caller who comes again at once is refused again"

    def test_a_line_gives_back_what_it_was_given(self) -> None:
        line = self.make().line()
        requests = [_request() for _ in range(20)]
        line.extend(requests)
        line.remove(requests[3])
        order = list(line)
        assert len(line) == len(order) == 19
        assert requests[3] not in line
        assert requests[4] in line
        assert [line.popleft() for _ in order] == order, "what is iterated is not what is run"
        line.append(requests[0])
        line.clear()
        assert list(line) == []

    def test_lines_of_several_levels_are_their_own(self) -> None:
        sharing = self.make()
        one, other = sharing.line(), sharing.line()
        one.append(_request())
        assert len(other) == 0


def _request() -> InferRequest:
    return InferRequest("model", {}, Witness().sink)
