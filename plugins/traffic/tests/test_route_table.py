from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest

from tritonpy import Conflict, InvalidArgument, NotFound, Unavailable
from tritonpy_traffic.route_table import RouteTable

from .scripted_router import ScriptedRouter, infer, router_of

A = {"targets": [{"model": "a", "version": 1}]}
CANARY = {"model": "a", "version": 2}


def table_of(engine: ScriptedRouter, **options: Any) -> RouteTable:
    return router_of(engine, **options)._table


def test_an_outdated_revision_changes_nothing(engine: ScriptedRouter) -> None:
    table = table_of(engine)
    first = table.put("route", A, 0).revision
    with pytest.raises(Conflict, match="route 'route' is at revision 1, not at 0: read it again"):
        table.put("route", A, 0)
    second = table.put("route", A, first).revision
    assert second > first
    with pytest.raises(Conflict):
        table.delete("route", first)
    table.delete("route", second)
    with pytest.raises(Conflict, match="does not exist"):
        table.put("route", A, second)
    assert table.put("route", A, None).revision > second


def test_only_one_of_several_concurrent_writers_succeeds(engine: ScriptedRouter) -> None:
    table = table_of(engine)
    revision = table.put("route", A, None).revision
    wins: list[int] = []
    start = threading.Barrier(8)

    def write() -> None:
        start.wait()
        with contextlib.suppress(Conflict):
            wins.append(table.put("route", A, revision).revision)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1


def test_an_unknown_route_or_canary_cannot_be_changed(engine: ScriptedRouter) -> None:
    table = table_of(engine)
    for change in (table.delete, table.promote, table.roll_back):
        with pytest.raises(NotFound, match="there is no route 'missing'"):
            change("missing", None)
    table.put("route", A, None)
    for change in (table.promote, table.roll_back):
        with pytest.raises(Unavailable, match="route 'route' has no live canary"):
            change("route", None)


def test_problems_are_reported_together(engine: ScriptedRouter) -> None:
    table = table_of(engine, sticky_headers=["X-Known"])
    for raw in (None, [], "text", {}):
        with pytest.raises(InvalidArgument, match="the route has 1 problem:"):
            table.put("route", raw, None)
    with pytest.raises(
        InvalidArgument, match=r"(?s)2 problems:.*weights are all 0.*'X-Other' is not available"
    ):
        table.put(
            "route",
            {"targets": [{"model": "a", "weight": 0}], "sticky": {"header": "X-Other"}},
            None,
        )
    table.put("route", {**A, "sticky": {"header": "x-known"}}, None)
    assert list(table.routes) == ["route"]


def test_targets_that_are_not_ready_cause_warnings(engine: ScriptedRouter) -> None:
    table = table_of(engine)
    route = table.put(
        "route", {**A, "shadow": {"model": "missing"}, "canary": {"model": "a", "version": 9}}, None
    )
    assert [text.split(" is not")[0] for text in table.warnings(route.spec)] == [
        "target 'a:9'",
        "target 'missing'",
    ]


def test_automatic_changes_are_saved(engine: ScriptedRouter, tmp_path: Path) -> None:
    path = tmp_path / "routes.json"
    engine.models["a", 2] = engine.bad
    router = router_of(engine, state_file=str(path))
    route = router._table.put("route", {**A, "canary": {**CANARY, "max_failed_share": 1}}, None)
    before = route.revision
    while route.run is not None and route.run.is_live:
        infer(router)
    router.close()
    again = table_of(engine, state_file=str(path)).get("route")
    assert again.run is not None
    assert (again.run.state.value, again.run.reason) == (
        "rolled back",
        route.run.reason if route.run else "",
    )
    assert again.revision > route.revision > before


def test_a_step_is_saved_and_restarts(engine: ScriptedRouter, tmp_path: Path) -> None:
    options = {"state_file": str(tmp_path / "routes.json")}
    table = table_of(engine, **options)
    route = table.put(
        "route",
        {
            **A,
            "canary": {
                **CANARY,
                "steps": [{"share": 0.1, "requests": 1}, {"share": 0.2, "seconds": 9}],
            },
        },
        None,
    )
    assert route.run is not None
    route.run.record_response(1000, failed=False)
    route.evaluate()
    table.close()
    again = table_of(engine, **options).get("route").run
    assert again is not None
    assert (again.step, again.is_live, again.canary.responses) == (1, True, 0)


def test_a_changed_configuration_overrides_run_time_changes(
    engine: ScriptedRouter, tmp_path: Path
) -> None:
    options = {"state_file": str(tmp_path / "routes.json")}
    configured = {"changed": A, "left": A, "edited": A}
    table = table_of(engine, **options, routes=configured)
    other = {"targets": [{"model": "b"}]}
    for name in ("changed", "edited", "made"):
        table.put(name, other, None)
    table.delete("left", None)
    table.close()
    edited = {**configured, "edited": {"targets": [{"model": "a", "version": 2}]}}
    labels = {
        name: route.spec.targets[0].label
        for name, route in table_of(engine, **options, routes=edited).routes.items()
    }
    assert labels == {"changed": "b", "edited": "a:2", "made": "b"}
    del edited["changed"]
    assert "changed" not in table_of(engine, **options, routes=edited).routes
