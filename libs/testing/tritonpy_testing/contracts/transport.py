"""The contract of transports."""

from __future__ import annotations

from typing import ClassVar

from tritonpy.frontend import Frontend, Transport
from tritonpy.plugins import Registration
from tritonpy_testing.contracts.plugin import PluginContract


class TransportContract(PluginContract):
    """The contract of `Transport`. Set `plugin_class`, `name`, and one carried `frontend`."""

    interface: ClassVar[type] = Transport
    hook = "tritonpy_transports"
    frontend: ClassVar[str] = "http"

    def kinds(self) -> dict[str, type[Frontend]]:
        """Return the classes of the carried frontends by name."""
        return {
            name: Registration(self.hook, name, target, self.name, "").load()
            for name, target in self.plugin_class.carries.items()
        }

    def test_it_carries_frontends(self) -> None:
        kinds = self.kinds()
        assert self.frontend in kinds
        assert [name for name, kind in kinds.items() if not issubclass(kind, Frontend)] == []
