"""Every route, what changes them, and what is kept of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from tritonpy import (
    Conflict,
    Engine,
    InvalidArgument,
    InvalidServerConfig,
    NotFound,
    TritonError,
    Unavailable,
    decode_options,
    now_ns,
)
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.canary import CanaryRun
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.route import Route
from tritonpy_traffic.spec import RouteSpec
from tritonpy_traffic.state_file import Kept, KeptCanary, KeptRoute, StateFile

log = logging.getLogger("tritonpy.traffic")


class RouteTable:
    """The routes by name; `replaced` gets the new mapping after each change. Changes are made one after the other and may block."""

    def __init__(
        self, options: TrafficOptions, engine: Engine, replaced: Callable[[Mapping[str, Route]], None]
    ) -> None:
        self.routes: Mapping[str, Route] = {}
        self._options = options
        self._engine = engine
        self._replaced = replaced
        self._copies = BackgroundThread("shadow copies")
        self._keeping = BackgroundThread("routes")
        self._file = StateFile(options.state_file)
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        kept = self._file.load()
        self._numbering = threading.Lock()  # a canary ends in whatever thread answers
        self._last_revision = kept.revision
        self._restore(kept)

    def _restore(self, kept: Kept) -> None:
        routes: dict[str, Route] = {}
        for name in {**self._options.routes, **kept.routes}:
            configured, before = self._options.routes.get(name), kept.routes.get(name)
            if before is not None and before.configured == configured:
                spec, canary = before.spec, before.canary
            else:  # server.yaml says something new of it
                spec, canary = configured, None
            if spec is not None:
                routes[name] = self._made(name, spec, canary)
        self._publish(routes)

    def _made(self, name: str, spec: RouteSpec, canary: KeptCanary | None = None) -> Route:
        route = Route(name, self._engine, self._copies, round(self._options.sequence_idle_s * 1e9), self._changed)
        run = None
        if spec.canary is not None and canary is not None:
            run = CanaryRun(spec.canary, now_ns(), canary.state, canary.step)
            run.reason = canary.reason
        route.configure(spec, self._revision(), run)
        return route

    def _revision(self) -> int:
        with self._numbering:
            self._last_revision += 1
            return self._last_revision

    def _publish(self, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        self._replaced(routes)

    def _changed(self, route: Route) -> None:
        route.revision = self._revision()
        self._keeping.add(self.save)

    def get(self, name: str) -> Route:
        """Return a route. Raises NotFound."""
        route = self.routes.get(name)
        if route is None:
            raise NotFound(f"there is no route '{name}'")
        return route

    def put(self, name: str, raw: object, revision: int | None) -> Route:
        """Make or change a route as `raw`, plain JSON, says. Raises InvalidArgument with everything that is wrong, Conflict for an old `revision`."""
        spec = self._decoded(raw)
        with self._lock:
            route = self.routes.get(name)
            self._require(name, revision, 0 if route is None else route.revision)
            if route is None:
                route = self._made(name, spec)
                self._publish({**self.routes, name: route})
            else:
                route.configure(spec, self._revision())
        log.info("route %s: %s", name, ", ".join(f"{target.label} {target.weight:g}" for target in spec.targets))
        self.save()
        return route

    def delete(self, name: str, revision: int | None) -> None:
        """Forget a route. Raises NotFound, and Conflict for an old `revision`."""
        with self._lock:
            route = self.get(name)
            self._require(name, revision, route.revision)
            self._publish({other: each for other, each in self.routes.items() if other != name})
            self._revision()
        log.info("route %s is gone", name)
        self.save()

    def promote(self, name: str, revision: int | None) -> Route:
        """Put a route's canary in the place of its primary. Raises NotFound, Conflict, and Unavailable where none is on its way."""
        return self._end_canary(name, revision, Route.promote)

    def roll_back(self, name: str, revision: int | None) -> Route:
        """Give a route's canary no further requests. Raises what `promote` raises."""
        return self._end_canary(name, revision, Route.roll_back)

    def _end_canary(self, name: str, revision: int | None, end: Callable[[Route], bool]) -> Route:
        with self._lock:
            route = self.get(name)
            self._require(name, revision, route.revision)
            if not end(route):
                raise Unavailable(f"route '{name}' has no canary on its way")
        self.save()
        return route

    @staticmethod
    def _require(name: str, revision: int | None, current: int) -> None:
        if revision is not None and revision != current:
            found = f"is at revision {current}" if current else "does not exist"
            raise Conflict(f"route '{name}' {found}, not at {revision}: read it again")

    def _decoded(self, raw: object) -> RouteSpec:
        try:
            spec = decode_options(RouteSpec, raw, "")
        except InvalidServerConfig as error:
            raise _wrong([str(problem) for problem in error.problems]) from None
        problems = list(spec.problems())
        if spec.sticky is not None and spec.sticky.header and spec.sticky.header.lower() not in self._options.headers:
            problems.append(
                f"sticky.header: '{spec.sticky.header}' is not kept of requests: name it under routers.traffic.sticky_headers of server.yaml"
            )
        if problems:
            raise _wrong(problems)
        return spec

    def save(self) -> None:
        """Keep the routes as they are now. Raises Internal where that fails: the change holds, until a restart."""
        with self._saving:
            self._file.save(self._kept())

    def _kept(self) -> Kept:
        configured, routes = self._options.routes, self.routes
        kept = {name: KeptRoute(None, configured[name]) for name in configured if name not in routes}
        for name, route in routes.items():
            with route.lock:
                run = route.run if route.spec.canary is not None else None
                canary = None if run is None else KeptCanary(run.state, run.step, run.reason)
                kept[name] = KeptRoute(route.spec, configured.get(name), canary)
        return Kept(self._last_revision, kept)

    def warnings(self, spec: RouteSpec) -> list[str]:
        """Return which targets do not serve now: they may come later, and are skipped until then."""
        others = [part.target for part in (spec.canary, spec.shadow) if part is not None]
        found = []
        for target in [*spec.targets, *others]:
            try:
                self._engine.model_config(target.model, target.number)
            except TritonError as error:
                found.append(f"target '{target.label}' does not serve now: {error.message}")
        return found

    def close(self) -> None:
        """End the threads."""
        self._copies.close()
        self._keeping.close()


def _wrong(problems: list[str]) -> InvalidArgument:
    count = len(problems)
    return InvalidArgument("\n  ".join([f"the route has {count} problem{'s' if count != 1 else ''}:", *problems]))
