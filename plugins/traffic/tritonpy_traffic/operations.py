"""What operators may ask of the routes at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tritonpy import Answerer, Operation, OperationCall, Verb
from tritonpy_traffic.route import Route
from tritonpy_traffic.shown import shown
from tritonpy_traffic.table import RouteTable

_ALL, _ONE = "traffic/routes", "traffic/routes/{route}"


class TrafficOperations:
    """The operations on the routes of `table`. Changes take the right `admin` on the server: a route decides what its name leads to."""

    def __init__(self, table: RouteTable) -> None:
        self._table = table

    def offered(self) -> Mapping[Operation, Answerer]:
        """Return them."""
        return {
            Operation("list_routes", "GET", _ALL, "List the routes.", Verb.READ): self.list,
            Operation("get_route", "GET", _ONE, "Tell a route, its canary and its counts.", Verb.READ): self.get,
            Operation("put_route", "PUT", _ONE, "Make or change a route; If-Match 0 only makes one."): self.put,
            Operation("delete_route", "DELETE", _ONE, "Forget a route."): self.delete,
            Operation(
                "promote_canary", "POST", f"{_ONE}/promote", "Put the canary in the place of the primary."
            ): self.promote,
            Operation(
                "roll_back_canary", "POST", f"{_ONE}/rollback", "Give the canary no further requests."
            ): self.roll_back,
        }

    def list(self, _call: OperationCall) -> dict[str, Any]:
        """Return every route."""
        return {"routes": [shown(route) for _, route in sorted(self._table.routes.items())]}

    def get(self, call: OperationCall) -> dict[str, Any]:
        """Return one route."""
        return self._told(self._table.get(call.parameters["route"]))

    def put(self, call: OperationCall) -> dict[str, Any]:
        """Make or change one."""
        return self._told(self._table.put(call.parameters["route"], call.body, call.revision))

    def delete(self, call: OperationCall) -> dict[str, Any]:
        """Forget one."""
        self._table.delete(call.parameters["route"], call.revision)
        return {}

    def promote(self, call: OperationCall) -> dict[str, Any]:
        """End a canary well."""
        return self._told(self._table.promote(call.parameters["route"], call.revision))

    def roll_back(self, call: OperationCall) -> dict[str, Any]:
        """End it otherwise."""
        return self._told(self._table.roll_back(call.parameters["route"], call.revision))

    def _told(self, route: Route) -> dict[str, Any]:
        return {**shown(route), "warnings": self._table.warnings(route.spec)}
