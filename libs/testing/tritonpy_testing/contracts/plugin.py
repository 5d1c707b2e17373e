"""The contract of all plugin classes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from tritonpy import Options
from tritonpy.config import decode_options, description
from tritonpy.plugins import PluginManager, make_plugin_manager
from tritonpy_testing.contracts.optional import OptionalTests, given, only_if


class PluginContract(OptionalTests):
    """The base class of contracts.

    Set `plugin_class`; `plugin` and `name` to check the registration.

    - `plugin`: the module or object with the hook implementations.
    - `name`: the name that it registers for the class.
    - `options`: option values as in server.yaml, for building the class.
    """

    plugin_class: ClassVar[Any]
    plugin: ClassVar[Any] = None
    name: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Any]] = {}
    # Set by the contract of a kind.
    interface: ClassVar[type]
    hook: ClassVar[str]

    def make_options(self) -> Options:
        """Return `options` decoded into the class's own struct."""
        options = decode_options(self.plugin_class.Options, self.options, "options")
        assert isinstance(options, Options)
        return options

    def manager(self) -> PluginManager:
        """Return a plugin manager with only `plugin`."""
        manager = make_plugin_manager(discover=False)
        if self.plugin is not None:
            manager.register(self.plugin, "plugin under test")
        manager.check()
        return manager

    def test_implements_the_interface(self) -> None:
        assert issubclass(self.plugin_class, self.interface), (
            f"{self.plugin_class} is no {self.interface.__name__}"
        )
        missing = sorted(getattr(self.plugin_class, "__abstractmethods__", ()))
        assert not inspect.isabstract(self.plugin_class), (
            f"{self.plugin_class.__name__} lacks {missing}"
        )

    @only_if(given("plugin"))
    def test_is_registered_under_its_name(self) -> None:
        table = self.manager().table(self.hook)
        assert self.name in table, f"{self.hook} registers {sorted(table)}, not '{self.name}'"
        assert table[self.name].load() is self.plugin_class

    def test_options_decode_with_defaults_and_refuse_unknown_keys(self) -> None:
        kind = getattr(self.plugin_class, "Options", None)
        if kind is None:  # this kind of plugin has no options
            return
        assert issubclass(kind, Options), (
            f"Options of {self.plugin_class.__name__} must derive from tritonpy.Options"
        )
        decode_options(kind, self.options, "options")
        for field in msgspec.structs.fields(kind):
            assert not field.required, f"the option '{field.encode_name}' needs a default"
        try:
            msgspec.convert({"no-such-option": 1}, kind)
        except msgspec.ValidationError:
            return
        raise AssertionError(
            "an unknown option must be refused: derive the struct from tritonpy.Options"
        )

    def test_every_option_is_described(self) -> None:
        for field in msgspec.structs.fields(getattr(self.plugin_class, "Options", Options)):
            text = description(field.type)
            assert text, (
                f"the option '{field.encode_name}' needs Annotated[…, msgspec.Meta(description=…)]"
            )
