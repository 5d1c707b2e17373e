from __future__ import annotations

from typing import Any

import pytest

from tritonpy import InvalidServerConfig, decode_options
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
        ({"targets": [A], "sticky": {}}, ["sticky: name a header or a parameter, one of them"]),
        (
            {"targets": [A], "sticky": {"header": "h", "parameter": "p"}},
            ["sticky: name a header or a parameter, one of them"],
        ),
        ({"targets": [A], "canary": A}, ["canary: 'a' is a target already"]),
        ({"targets": [A], "canary": B}, []),
        (
            {"targets": [A], "canary": {**B, "steps": [{"share": 0.5}, {"share": 0.5, "seconds": 1}]}},
            [
                "canary.steps[0]: it needs seconds or requests, or it is over at once",
                "canary.steps[1].share: 0.5 does not rise from 0.5",
            ],
        ),
    ],
)
def test_what_no_single_field_shows_is_told_all_at_once(raw: dict[str, Any], problems: list[str]) -> None:
    assert list(decode_options(RouteSpec, raw, "").problems()) == problems


def test_server_yaml_is_refused_with_everything_that_is_wrong_in_its_routes() -> None:
    raw = {"routes": {"one": {"targets": [B, B], "sticky": {}}, "two": {"targets": [{**A, "weight": 0}]}}}
    with pytest.raises(InvalidServerConfig) as caught:
        decode_options(TrafficOptions, raw, "routers.traffic")
    for text in ("routes.one.targets: 'b:3'", "routes.one.sticky: ", "routes.two.targets: "):
        assert text in str(caught.value)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_no_path_could_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidServerConfig):
        decode_options(TrafficOptions, {"routes": {name: {"targets": [A]}}}, "")


def test_headers_of_routes_and_those_that_are_named_are_kept() -> None:
    raw = {"routes": {"r": {"targets": [A], "sticky": {"header": "X-User"}}}, "sticky_headers": ["Cookie"]}
    assert decode_options(TrafficOptions, raw, "").headers == {"x-user", "cookie"}
