from __future__ import annotations

from typing import Any

import pytest

from tritonpy.config import InvalidServerConfig, decode_options
from tritonpy_traffic.options import TrafficOptions
from tritonpy_traffic.spec import RouteSpec

A, B = {"model": "a"}, {"model": "b", "version": 3}


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        ({"targets": [A, B]}, []),
        ({"targets": [A, {"model": "a", "version": 1}]}, []),
        ({"targets": [B, B]}, ["targets: 'b:3' is named twice"]),
        ({"targets": [{**A, "weight": 0}]}, ["targets: the weights are all 0"]),
        ({"targets": [A], "sticky": {}}, ["sticky: set either a header or a parameter"]),
        (
            {"targets": [A], "sticky": {"header": "h", "parameter": "p"}},
            ["sticky: set either a header or a parameter"],
        ),
        ({"targets": [A], "canary": A}, ["canary: 'a' is a target already"]),
        ({"targets": [A], "canary": B}, []),
        (
            {
                "targets": [A],
                "canary": {**B, "steps": [{"share": 0.5}, {"share": 0.5, "seconds": 1}]},
            },
            [
                "canary.steps[0]: set seconds or requests, otherwise the step ends immediately",
                "canary.steps[1].share: 0.5 does not rise from 0.5",
            ],
        ),
    ],
)
def test_problems_of_several_fields_are_reported_together(
    raw: dict[str, Any], problems: list[str]
) -> None:
    assert list(decode_options(RouteSpec, raw, "").problems()) == problems


def test_all_problems_of_configured_routes_are_reported() -> None:
    raw = {
        "routes": {
            "one": {"targets": [B, B], "sticky": {}},
            "two": {"targets": [{**A, "weight": 0}]},
        }
    }
    with pytest.raises(InvalidServerConfig) as caught:
        decode_options(TrafficOptions, raw, "routers.traffic")
    for text in ("routes.one.targets: 'b:3'", "routes.one.sticky: ", "routes.two.targets: "):
        assert text in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_does_not_fit_in_a_path_is_rejected(name: str) -> None:
    with pytest.raises(InvalidServerConfig):
        decode_options(TrafficOptions, {"routes": {name: {"targets": [A]}}}, "")


def test_headers_are_those_of_routes_and_sticky_headers() -> None:
    raw = {
        "routes": {"r": {"targets": [A], "sticky": {"header": "X-User"}}},
        "sticky_headers": ["Cookie"],
    }
    assert decode_options(TrafficOptions, raw, "").headers == {"x-user", "cookie"}
