"""The traffic router: an engine wrapper in which a route is a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tritonpy import Engine, InferRequest, InvalidArgument, NotFound, TritonError, Unavailable
from tritonpy.frontend import ModelMetadata, Operation, OperationHandler, Router, RouterContext
from tritonpy.metrics import ModelStatistics
from tritonpy_traffic.metrics import snapshot
from tritonpy_traffic.operations import TrafficOperations
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.route import Route
from tritonpy_traffic.route_table import RouteTable
from tritonpy_traffic.spec import Target

if TYPE_CHECKING:
    from tritonpy_protos.model_config_pb2 import ModelConfig

T = TypeVar("T")


class TrafficRouter(Router):
    """Sends requests that name a route, and no version, to the targets of the route.

    Metadata calls for a route return the metadata of its first ready target, with the route's name.
    """

    Options = TrafficOptions
    options: TrafficOptions

    def __init__(self, options: TrafficOptions, engine: Engine, context: RouterContext) -> None:
        super().__init__(options, engine, context)
        self._routes: Mapping[str, Route] = {}
        self._configs: dict[str, tuple[ModelConfig, ModelConfig]] = {}
        self._table = RouteTable(options, engine, self._set_routes)
        context.metrics.add_source(lambda: snapshot(self._routes))

    def _set_routes(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes
        self._configs = {
            name: saved for name, saved in list(self._configs.items()) if name in routes
        }

    def headers(self) -> frozenset[str]:
        return self.options.headers

    def router_operations(self) -> Mapping[Operation, OperationHandler]:
        return TrafficOperations(self._table).router_operations()

    def close(self) -> None:
        self._table.close()

    def infer(self, request: InferRequest) -> None:
        route = self._routes.get(request.model_name)
        if route is None or request.model_version != -1:
            self.engine.infer(request)
        else:
            route.infer(request)

    def is_model_ready(self, name: str, version: int = -1) -> bool:
        route = self._route(name, version)
        if route is None:
            return self.engine.is_model_ready(name, version)
        return any(self._is_ready(target) for target in route.spec.targets)

    def _is_ready(self, target: Target) -> bool:
        try:
            return self.engine.is_model_ready(target.model, target.number)
        except TritonError:  # the model does not exist yet
            return False

    def model_metadata(self, name: str, version: int = -1) -> ModelMetadata:
        route = self._route(name, version)
        if route is None:
            return self.engine.model_metadata(name, version)
        return msgspec.structs.replace(
            self._call_first_serving(route, self.engine.model_metadata), name=name
        )

    def request_parameters(self, name: str, version: int = -1) -> frozenset[str] | None:
        route = self._route(name, version)
        if route is None:
            return self.engine.request_parameters(name, version)
        return self._call_first_serving(route, self.engine.request_parameters)

    def model_folder(self, name: str, version: int = -1) -> str:
        route = self._route(name, version)
        if route is None:
            return self.engine.model_folder(name, version)
        return self._call_first_serving(route, self.engine.model_folder)

    def model_config(self, name: str, version: int = -1) -> ModelConfig:
        route = self._route(name, version)
        if route is None:
            return self.engine.model_config(name, version)
        config = self._call_first_serving(route, self.engine.model_config)
        if config.name == name:
            return config
        saved = self._configs.get(name)
        if saved is None or saved[0] is not config:
            renamed = type(config)()
            renamed.CopyFrom(config)
            renamed.name = name
            saved = self._configs[name] = config, renamed
        return saved[1]

    def statistics(self, name: str = "", version: int = -1) -> Sequence[ModelStatistics]:
        route = self._route(name, version)
        if route is None:
            return self.engine.statistics(name, version)
        found = self._call_first_serving(route, self.engine.statistics)
        return [msgspec.structs.replace(each, name=name) for each in found]

    def _route(self, name: str, version: int) -> Route | None:
        return self._routes.get(name) if version == -1 else None

    @staticmethod
    def _call_first_serving(route: Route, call: Callable[[str, int], T]) -> T:
        for target in route.spec.targets:
            try:
                return call(target.model, target.number)
            except (NotFound, InvalidArgument):
                continue
            except Unavailable as error:
                if target is route.spec.targets[-1]:
                    raise error.with_traceback(None) from None
        raise NotFound(f"Request for unknown model: '{route.name}' is not found")
