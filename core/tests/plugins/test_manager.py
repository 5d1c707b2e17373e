from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tritonpy.frontend import Transport
from tritonpy.hookspecs import hookimpl, registration_hooks
from tritonpy.plugins import PluginManager, Registration, make_plugin_manager
from tritonpy.plugins import manager as manager_module
from tritonpy.plugins.manager import PACKAGES, frontend_classes, package_of
from tritonpy.repository import builtin
from tritonpy_types.errors import PluginError


def providing(provided: Any, hook: str = "tritonpy_backends", **attributes: Any) -> ModuleType:
    """Return a plugin module that registers `provided`."""

    def implementation() -> Any:
        return provided

    module = ModuleType("toy")
    implementation.__name__ = hook
    setattr(module, hook, hookimpl(implementation))
    vars(module).update(attributes)
    return module


def managing(*plugins: tuple[Any, str]) -> PluginManager:
    made = make_plugin_manager(discover=False)
    for number, (plugin, distribution) in enumerate(plugins):
        made.register(plugin, f"plugin{number}", distribution)
    return made


class EntryPoint:
    """An installed entry point."""

    def __init__(self, name: str, distribution: str, plugin: Any) -> None:
        self.name = name
        self.value = distribution
        self.dist = SimpleNamespace(name=distribution, version="1.2")
        self._plugin = plugin

    def load(self) -> Any:
        if isinstance(self._plugin, Exception):
            raise self._plugin
        return self._plugin


def installing(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(
        manager_module, "entry_points", lambda group: list(entries) if group == "tritonpy" else []
    )


def test_names_lead_to_classes_and_their_owner() -> None:
    entry = managing((providing({"toy": dict}), "dist-a")).table("tritonpy_backends")["toy"]
    assert (entry.load(), entry.owner) == (dict, "dist-a")


def test_a_duplicate_name_reports_both_owners() -> None:
    made = managing((providing({"toy": dict}), "dist-a"), (providing({"toy": list}), "dist-b"))
    with pytest.raises(
        PluginError, match=r"tritonpy_backends: the name 'toy' is registered by dist-. and by dist-"
    ) as caught:
        made.check()
    assert "dist-a" in str(caught.value)
    assert "dist-b" in str(caught.value)


def test_the_same_name_under_two_hooks_is_no_conflict() -> None:
    made = managing(
        (providing({"toy": dict}), "a"), (providing({"toy": dict}, "tritonpy_caches"), "b")
    )
    made.check()


def test_two_plugins_of_one_name_are_refused_with_both_owners() -> None:
    made = make_plugin_manager(discover=False)
    made.register(providing({}), "toy", "dist-a")
    with pytest.raises(
        PluginError, match=r"two plugins have the name 'toy', from dist-a and from dist-b"
    ):
        made.register(providing({}), "toy", "dist-b")


def test_a_misspelled_hook_suggests_the_closest_one() -> None:
    made = managing((providing({}, "tritonpy_backend"), "dist-a"))
    with pytest.raises(
        PluginError, match=r"dist-a .* 'tritonpy_backend' .did you mean 'tritonpy_backends'"
    ):
        made.check()


def test_a_hook_with_other_arguments_is_refused() -> None:
    class Curious:
        @hookimpl
        def tritonpy_backends(self, engine: object) -> Mapping[str, type]:
            return {}

    with pytest.raises(PluginError, match=r"^dist-a implements a hook with wrong arguments"):
        managing((Curious(), "dist-a"))


@pytest.mark.parametrize("provided", [None, [dict]])
def test_a_hook_must_return_a_mapping(provided: Any) -> None:
    with pytest.raises(
        PluginError, match=r"^dist-a: tritonpy_backends must return a mapping of names to classes"
    ):
        managing((providing(provided), "dist-a")).check()


@pytest.mark.parametrize(
    ("version", "fits"), [((1, 0), True), ((2, 0), False), ((0, 9), False), ((1, 1), False)]
)
def test_a_plugin_for_another_api_version_is_refused_by_name(
    version: tuple[int, int], fits: bool
) -> None:
    plugin = providing({"toy": dict}, TRITONPY_API_VERSION=version)
    if fits:
        managing((plugin, "dist-a")).check()
        return
    text = rf"^dist-a requires version {version[0]}.{version[1]} of the plugin API, this server has 1.0"
    with pytest.raises(PluginError, match=text):
        managing((plugin, "dist-a"))


def test_an_unknown_name_has_a_package_or_the_closest_name() -> None:
    made = managing((providing({"toy": dict}), "dist-a"))
    with pytest.raises(
        PluginError, match=r"^no plugin provides backend 'pytorch': .* tritonpy-backend-torch$"
    ):
        made.get("tritonpy_backends", "pytorch", "backend")
    with pytest.raises(
        PluginError, match=r"^no plugin provides backend 'toi', did you mean 'toy'\?$"
    ):
        made.get("tritonpy_backends", "toi", "backend")
    with pytest.raises(PluginError, match=r"installed are: toy$"):
        made.get("tritonpy_backends", "zzz", "backend")
    with pytest.raises(PluginError, match=r"installed are: none$"):
        made.get("tritonpy_caches", "zzz", "cache")


def test_installed_plugins_are_found_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    installing(
        monkeypatch,
        EntryPoint("b", "dist-b", providing({"toy": dict})),
        EntryPoint("core", "tritonpy", builtin),
    )
    infos = make_plugin_manager().plugins()
    assert [(info.name, info.distribution, info.version) for info in infos] == [
        ("b", "dist-b", "1.2"),
        ("core", "tritonpy", "1.2"),
    ]
    assert infos[0].hooks == {"tritonpy_backends": ["toy"]}
    assert infos[1].hooks == {
        "tritonpy_repositories": ["file"],
        "tritonpy_runners": ["thread"],
        "tritonpy_rate_limiters": ["off"],
        "tritonpy_trace_sinks": ["triton"],
        "tritonpy_commands": ["plugins"],
    }


def test_listing_and_looking_up_import_nothing() -> None:
    made = managing((providing({"toy": "module_that_is_not_there:Toy"}), "dist-a"))
    made.check()
    assert made.plugins()[0].hooks == {"tritonpy_backends": ["toy"]}
    assert made.get("tritonpy_backends", "toy", "backend").owner == "dist-a"
    assert "module_that_is_not_there" not in sys.modules


def test_a_plugin_that_cannot_be_imported_is_named_with_a_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installing(monkeypatch, EntryPoint("broken", "dist-a", ImportError("libfoo is missing")))
    with pytest.raises(PluginError) as caught:
        make_plugin_manager()
    text = str(caught.value)
    assert text.startswith(
        "plugin 'broken' of dist-a cannot be imported: ImportError: libfoo is missing."
    )
    assert "'plugins: {disable: [broken]}'" in text


@pytest.mark.parametrize("name", ["broken", "dist-a"])
def test_a_disabled_plugin_is_not_imported(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    installing(
        monkeypatch,
        EntryPoint("broken", "dist-a", ImportError("x")),
        EntryPoint("good", "dist-b", providing({})),
    )
    assert [info.name for info in make_plugin_manager(disable=[name]).plugins()] == ["good"]


def test_disabling_an_unknown_plugin_suggests_the_closest_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installing(monkeypatch, EntryPoint("frontend-http", "tritonpy-frontend-http", providing({})))
    with pytest.raises(
        PluginError,
        match=r"^plugins: disable: no plugin 'frontend-htp' is installed, did you mean 'frontend-http'",
    ):
        make_plugin_manager(disable=["frontend-htp"])
    with pytest.raises(PluginError, match=r"installed are: frontend-http, tritonpy-frontend-http$"):
        make_plugin_manager(disable=["zzz"])


def test_each_manager_has_its_own_plugins() -> None:
    managing((providing({"toy": dict}), "dist-a"))
    assert make_plugin_manager(discover=False).table("tritonpy_backends") == {}


def test_hook_calls_can_be_traced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITONPY_TRACE_HOOKS", "1")
    make_plugin_manager(discover=False).hook.tritonpy_server_stopping(engine=None)
    assert "tritonpy_server_stopping" in capsys.readouterr().err


def test_known_names_lead_to_their_distribution() -> None:
    assert package_of("tritonpy_backends", "onnxruntime") == "tritonpy-backend-onnx"
    assert package_of("tritonpy_backends", "nothing") is None
    assert package_of("tritonpy_repo_agents", "sealed") == "tritonpy-agent-sealed"
    assert package_of("tritonpy_commands", "bench") == "tritonpy-bench"
    assert package_of("tritonpy_commands", "serve") == "tritonpy-serve"
    assert package_of("tritonpy_commands", "plugins") is None


def test_every_table_belongs_to_a_hook() -> None:
    assert set(PACKAGES) <= set(registration_hooks())


def registration(target: type | str) -> Registration:
    return Registration("tritonpy_backends", "toy", target, "tritonpy-toy", "1.0")


def test_a_class_is_itself() -> None:
    assert registration(dict).load() is dict


def test_a_text_is_imported_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lazy_toy.py").write_text("class Toy: pass")
    monkeypatch.syspath_prepend(tmp_path)
    lazy = registration("lazy_toy:Toy")
    assert "lazy_toy" not in sys.modules
    assert lazy.load().__name__ == "Toy"
    del sys.modules["lazy_toy"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (
            "import nothing_like_this",
            "cannot be imported: ModuleNotFoundError: No module named 'nothing_like_this'",
        ),
        (
            "raise OSError('libfoo.so: not found')",
            "cannot be imported: OSError: libfoo.so: not found",
        ),
        (
            "import sys\nsys.no_such_thing",
            "cannot be imported: AttributeError: module 'sys' has no attribute",
        ),
        ("Other = 1", "names 'broken_toy:Toy', which does not exist"),
    ],
)
def test_a_class_that_cannot_be_imported_is_reported_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    (tmp_path / "broken_toy.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_toy", raising=False)
    with pytest.raises(PluginError) as caught:
        registration("broken_toy:Toy").load()
    assert f"plugin 'toy' of tritonpy-toy {text}" in str(caught.value)
    sys.modules.pop("broken_toy", None)


class Own:
    """A frontend with its own listener."""


class Carried:
    """The same frontend on a transport."""


class Wire(Transport):
    carries = {"grpc": f"{__name__}:Carried"}  # noqa: RUF012


class Plugin:
    @hookimpl
    def tritonpy_transports(self):
        return {"wire": Wire}

    @hookimpl
    def tritonpy_frontends(self):
        return {"http": Own, "grpc": Own}


@pytest.fixture
def manager():
    manager = make_plugin_manager(discover=False)
    manager.register(Plugin(), "wires")
    return manager


@pytest.mark.parametrize(
    ("transports", "name", "expected"),
    [([], "grpc", "Own"), (["wire"], "grpc", "Carried"), (["wire"], "http", "Own")],
)
def test_a_frontend_has_its_own_class_unless_the_transport_carries_it(
    manager, transports, name, expected
):
    assert frontend_classes(manager, transports)(name).__name__ == expected


def test_missing_plugins_are_named(manager):
    with pytest.raises(PluginError, match="transport 'boat'"):
        frontend_classes(manager, ["boat"])
    with pytest.raises(PluginError, match="frontend 'pigeon'"):
        frontend_classes(manager, ["wire"])("pigeon")
