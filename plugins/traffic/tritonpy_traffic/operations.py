"""Operations on routes at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy.auth import Verb
from tritonpy.frontend import Operation, OperationCall, OperationHandler
from tritonpy_traffic.route import Route
from tritonpy_traffic.route_json import route_to_json
from tritonpy_traffic.route_table import RouteTable

_ALL, _ONE = "traffic/routes", "traffic/routes/{route}"


class TrafficOperations:
    """The operations on the routes of `table`.

    Changes need the right `admin` on the server, because a route decides which model its name
    reaches.
    """

    def __init__(self, table: RouteTable) -> None:
        self._table = table

    def router_operations(self) -> Mapping[Operation, OperationHandler]:
        """Return the operations and their handlers."""
        return {
            Operation("list_routes", "GET", _ALL, "List the routes.", Verb.READ): self.list,
            Operation(
                "get_route", "GET", _ONE, "Get a route, its canary and its counters.", Verb.READ
            ): self.get,
            Operation(
                "put_route",
                "PUT",
                _ONE,
                "Create or change a route; with If-Match 0 only create it.",
            ): self.put,
            Operation("delete_route", "DELETE", _ONE, "Delete a route."): self.delete,
            Operation(
                "promote_canary", "POST", f"{_ONE}/promote", "Replace the primary with the canary."
            ): self.promote,
            Operation(
                "roll_back_canary",
                "POST",
                f"{_ONE}/rollback",
                "Stop sending requests to the canary.",
            ): self.roll_back,
        }

    def list(self, _call: OperationCall) -> dict[str, Any]:
        """Return every route."""
        return {"routes": [route_to_json(route) for _, route in sorted(self._table.routes.items())]}

    def get(self, call: OperationCall) -> dict[str, Any]:
        """Return one route."""
        return self._to_json(self._table.get(call.parameters["route"]))

    def put(self, call: OperationCall) -> dict[str, Any]:
        """Create or change a route."""
        return self._to_json(self._table.put(call.parameters["route"], call.body, call.revision))

    def delete(self, call: OperationCall) -> dict[str, Any]:
        """Delete a route."""
        self._table.delete(call.parameters["route"], call.revision)
        return {}

    def promote(self, call: OperationCall) -> dict[str, Any]:
        """Promote the canary of a route."""
        return self._to_json(self._table.promote(call.parameters["route"], call.revision))

    def roll_back(self, call: OperationCall) -> dict[str, Any]:
        """Roll back the canary of a route."""
        return self._to_json(self._table.roll_back(call.parameters["route"], call.revision))

    def _to_json(self, route: Route) -> dict[str, Any]:
        return {**route_to_json(route), "warnings": self._table.warnings(route.spec)}
