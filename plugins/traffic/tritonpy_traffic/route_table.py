"""The table of all routes: changes, revisions and persistence."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from tritonpy import Conflict, Engine, InvalidArgument, NotFound, TritonError, Unavailable, now_ns
from tritonpy.config import InvalidServerConfig, decode_options
from tritonpy_traffic.background import BackgroundThread
from tritonpy_traffic.canary import CanaryRun
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.route import Route
from tritonpy_traffic.spec import RouteSpec
from tritonpy_traffic.state_file import SavedCanary, SavedRoute, SavedState, StateFile

log = logging.getLogger("tritonpy.traffic")


class RouteTable:
    """The routes by name. `on_change` receives the new mapping after each change.

    Changes are serialized and may block.
    """

    def __init__(
        self,
        options: TrafficOptions,
        engine: Engine,
        on_change: Callable[[Mapping[str, Route]], None],
    ) -> None:
        self.routes: Mapping[str, Route] = {}
        self._options = options
        self._engine = engine
        self._on_change = on_change
        self._shadow_thread = BackgroundThread("shadow copies")
        self._save_thread = BackgroundThread("routes")
        self._file = StateFile(options.state_file)
        self._lock = threading.Lock()
        self._save_lock = threading.Lock()
        saved = self._file.load()
        self._revision_lock = threading.Lock()  # any thread that responds may end a canary
        self._last_revision = saved.revision
        self._restore(saved)

    def _restore(self, saved: SavedState) -> None:
        routes: dict[str, Route] = {}
        for name in {**self._options.routes, **saved.routes}:
            configured, before = self._options.routes.get(name), saved.routes.get(name)
            if before is not None and before.configured == configured:
                spec, canary = before.spec, before.canary
            else:  # the configuration in server.yaml changed
                spec, canary = configured, None
            if spec is not None:
                routes[name] = self._make_route(name, spec, canary)
        self._publish(routes)

    def _make_route(self, name: str, spec: RouteSpec, canary: SavedCanary | None = None) -> Route:
        route = Route(
            name,
            self._engine,
            self._shadow_thread,
            round(self._options.sequence_idle_s * 1e9),
            self._changed,
        )
        run = None
        if spec.canary is not None and canary is not None:
            run = CanaryRun(spec.canary, now_ns(), canary.state, canary.step)
            run.reason = canary.reason
        route.configure(spec, self._revision(), run)
        return route

    def _revision(self) -> int:
        with self._revision_lock:
            self._last_revision += 1
            return self._last_revision

    def _publish(self, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        self._on_change(routes)

    def _changed(self, route: Route) -> None:
        route.revision = self._revision()
        self._save_thread.add(self.save)

    def get(self, name: str) -> Route:
        """Return a route. Raises `NotFound`."""
        route = self.routes.get(name)
        if route is None:
            raise NotFound(f"there is no route '{name}'")
        return route

    def put(self, name: str, raw: object, revision: int | None) -> Route:
        """Create or change a route from `raw`, plain JSON.

        Raises `InvalidArgument` with all problems, `Conflict` for an outdated `revision`.
        """
        spec = self._decoded(raw)
        with self._lock:
            route = self.routes.get(name)
            self._check_revision(name, revision, 0 if route is None else route.revision)
            if route is None:
                route = self._make_route(name, spec)
                self._publish({**self.routes, name: route})
            else:
                route.configure(spec, self._revision())
        log.info(
            "route %s: %s",
            name,
            ", ".join(f"{target.label} {target.weight:g}" for target in spec.targets),
        )
        self.save()
        return route

    def delete(self, name: str, revision: int | None) -> None:
        """Delete a route. Raises `NotFound`, or `Conflict` for an outdated `revision`."""
        with self._lock:
            route = self.get(name)
            self._check_revision(name, revision, route.revision)
            self._publish({other: each for other, each in self.routes.items() if other != name})
            self._revision()
        log.info("route %s was deleted", name)
        self.save()

    def promote(self, name: str, revision: int | None) -> Route:
        """Replace a route's primary with its canary.

        Raises `NotFound`, `Conflict`, or `Unavailable` without a live canary.
        """
        return self._end_canary(name, revision, Route.promote)

    def roll_back(self, name: str, revision: int | None) -> Route:
        """Roll back a route's canary. Raises the same errors as `promote`."""
        return self._end_canary(name, revision, Route.roll_back)

    def _end_canary(self, name: str, revision: int | None, end: Callable[[Route], bool]) -> Route:
        with self._lock:
            route = self.get(name)
            self._check_revision(name, revision, route.revision)
            if not end(route):
                raise Unavailable(f"route '{name}' has no live canary")
        self.save()
        return route

    @staticmethod
    def _check_revision(name: str, revision: int | None, current: int) -> None:
        if revision is not None and revision != current:
            found = f"is at revision {current}" if current else "does not exist"
            raise Conflict(f"route '{name}' {found}, not at {revision}: read it again")

    def _decoded(self, raw: object) -> RouteSpec:
        try:
            spec = decode_options(RouteSpec, raw, "")
        except InvalidServerConfig as error:
            raise _invalid_spec([str(problem) for problem in error.problems]) from None
        problems = list(spec.problems())
        if (
            spec.sticky is not None
            and spec.sticky.header
            and spec.sticky.header.lower() not in self._options.headers
        ):
            problems.append(
                f"sticky.header: '{spec.sticky.header}' is not available: "
                "add it to routers.traffic.sticky_headers in server.yaml"
            )
        if problems:
            raise _invalid_spec(problems)
        return spec

    def save(self) -> None:
        """Save the current routes.

        Raises `Internal` on failure; changes are then lost at the next restart.
        """
        with self._save_lock:
            self._file.save(self._snapshot())

    def _snapshot(self) -> SavedState:
        configured, routes = self._options.routes, self.routes
        saved = {
            name: SavedRoute(None, configured[name]) for name in configured if name not in routes
        }
        for name, route in routes.items():
            with route.lock:
                run = route.run if route.spec.canary is not None else None
                canary = None if run is None else SavedCanary(run.state, run.step, run.reason)
                saved[name] = SavedRoute(route.spec, configured.get(name), canary)
        return SavedState(self._last_revision, saved)

    def warnings(self, spec: RouteSpec) -> list[str]:
        """Return a warning for each target that is not ready. It is skipped until it is ready."""
        others = [part.target for part in (spec.canary, spec.shadow) if part is not None]
        found = []
        for target in [*spec.targets, *others]:
            try:
                self._engine.model_config(target.model, target.number)
            except TritonError as error:
                found.append(f"target '{target.label}' is not ready: {error.message}")
        return found

    def close(self) -> None:
        """End the threads."""
        self._shadow_thread.close()
        self._save_thread.close()


def _invalid_spec(problems: list[str]) -> InvalidArgument:
    count = len(problems)
    return InvalidArgument(
        "\n  ".join([f"the route has {count} problem{'s' if count != 1 else ''}:", *problems])
    )
