from __future__ import annotations

from typing import Annotated, Any

import pytest
from msgspec import Meta

from tritonpy import InferRequest, Options, hookimpl
from tritonpy.auth import Verb
from tritonpy.engine.local import LocalEngine
from tritonpy.frontend import Operation, OperationCall, OperationGroup, Router
from tritonpy.plugins import PluginError
from tritonpy_testing import RecordingSink

from ..toys.serving import ToyPlugin, serving, toy_plugins

ECHO = Operation("echo", "GET", "echo", "Return the body.", Verb.READ)


class LabelOptions(Options, frozen=True):
    label: Annotated[str, Meta(description="Whose it is")] = ""


class LabelRouter(Router):
    """Appends its label to the model name of each request, and to a shared list."""

    Options = LabelOptions
    seen: list[str]

    def __init__(self, options: Any, engine: Any, context: Any) -> None:
        super().__init__(options, engine, context)
        type(self).seen = []
        context.metrics.add_source(list)
        self.log = context.log

    def infer(self, request: InferRequest) -> None:
        self.seen.append(self.options.label)
        super().infer(request)

    def headers(self) -> frozenset[str]:
        return frozenset({f"x-{self.options.label}"})

    def close(self) -> None:
        self.seen.append(f"{self.options.label} closed")
        raise ZeroDivisionError


class Inner(LabelRouter):
    seen: list[str]

    def router_operations(self) -> Any:
        return {ECHO: lambda call: [*self.seen, call.body]}


class Group(OperationGroup):
    closed = False

    def operations(self) -> Any:
        return {
            Operation("live", "GET", "live", "Tell.", Verb.READ): lambda _call: (
                self.engine.is_live()
            )
        }

    def close(self) -> None:
        type(self).closed = True


class Taken(OperationGroup):
    def operations(self) -> Any:
        return {ECHO: lambda _call: None}


class FrontPlugin:
    @hookimpl
    def tritonpy_routers(self) -> Any:
        return {"outer": LabelRouter, "inner": Inner}

    @hookimpl
    def tritonpy_operations(self) -> Any:
        return {"group": Group, "taken": Taken}


def plugins() -> Any:
    manager = toy_plugins(ToyPlugin({}))
    manager.register(FrontPlugin(), "front")
    return manager


def test_without_routers_clients_have_the_engine_itself(model_repository: Any) -> None:
    with serving(model_repository, plugins()) as server:
        assert type(server.engine) is LocalEngine
        assert server.engine.operations() == []


def test_the_first_router_is_outermost_and_each_has_its_options(
    model_repository: Any, caplog: pytest.LogCaptureFixture
) -> None:
    routers = {"outer": {"label": "one"}, "inner": {"label": "two"}}
    recorder = RecordingSink()
    with serving(model_repository, plugins(), routers=routers, operations={"group": {}}) as server:
        assert isinstance(server.engine, LabelRouter)
        assert isinstance(server.engine.engine, Inner)
        server.engine.operate("echo", OperationCall())
        with pytest.raises(Exception, match="unknown model"):
            server.engine.infer(InferRequest("nobody", {}, recorder.sink))
        assert (LabelRouter.seen, Inner.seen) == (["one"], ["two"])
        assert server.engine.operate("echo", OperationCall(body=3)) == ["two", 3]
        assert server.engine.operate("live", OperationCall()) is True
        assert [operation.name for operation in server.engine.operations()] == ["echo", "live"]
    assert (LabelRouter.seen[-1], Inner.seen[-1]) == ("one closed", "two closed")
    assert Group.closed
    assert caplog.text.count("failed to close") == 2


def test_an_operation_offered_twice_fails_the_start(model_repository: Any) -> None:
    with (
        pytest.raises(PluginError, match="two operations"),
        serving(model_repository, plugins(), routers={"inner": {}}, operations={"taken": {}}),
    ):
        pass


def test_an_unknown_router_is_reported_with_its_package(model_repository: Any) -> None:
    with (
        pytest.raises(PluginError, match="tritonpy-traffic"),
        serving(model_repository, plugins(), routers={"traffic": {}}),
    ):
        pass
