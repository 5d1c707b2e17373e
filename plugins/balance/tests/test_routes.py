"""Calls go to servers that can answer them, and are repeated only where that is safe."""

from __future__ import annotations

import json

import pytest

from tritonpy_balance.envoy_config import clusters
from tritonpy_balance.options import BalanceOptions, InvalidBackend, ServerAddress, parse_backend
from tritonpy_balance.routes import make_table, route_configuration
from tritonpy_balance.servers import BackendSource, ServerStatus

A, B, C = (ServerAddress("h", port, port + 1) for port in (1, 3, 5))


def state(backend, *models, sequences=(), ready=True):
    return ServerStatus(backend, ready, frozenset(models), frozenset(sequences))


def test_servers_with_equal_models_are_one_pool():
    table = make_table([state(A, "x", "y"), state(B, "x", "y")])
    assert [pool.backends for pool in table.pools] == [(A, B)]
    assert table.models == ()


def test_a_model_of_some_servers_has_a_pool_that_similar_models_share():
    table = make_table([state(A, "x", "y", "z"), state(B, "z"), state(C, "x", "y", "z")])
    assert [pool.backends for pool in table.pools] == [(A, B, C), (A, C)]
    assert [(name, pool.backends) for name, pool in table.models] == [("x", (A, C)), ("y", (A, C))]


def test_unready_servers_and_servers_without_an_index_do_not_split_models():
    silent = ServerStatus(C, True)
    table = make_table([state(A, "x"), state(B, ready=False), silent])
    assert table.pools[0].backends == (A, B, C)
    assert table.models == ()


def test_models_with_sequences_are_sticky_on_all_servers_even_unready_ones():
    table = make_table([state(A, "s", sequences=["s"]), state(B, ready=False)])
    ((name, pool),) = table.models
    assert (name, pool.sticky, pool.backends) == ("s", True, (A, B))


def routes(table, **options):
    configuration = route_configuration(table, BalanceOptions(**options))
    return configuration["virtual_hosts"][0]["routes"]


def test_only_inference_is_repeated_whatever_happens():
    table = make_table([state(A, "s", sequences=["s"]), state(B, "s", sequences=["s"])])
    found = {}
    for route in routes(table):
        if "route" in route:
            match = route["match"]
            place = match.get("path") or match.get("path_separated_prefix") or match.get("prefix")
            found[place, bool(match.get("headers"))] = route["route"].get("retry_policy")
    when = {place: policy and policy["retry_on"] for place, policy in found.items()}
    assert "reset" in when["/inference.GRPCInferenceService/ModelInfer", False]
    assert "reset" in when["/v2/models/", False]
    assert when["/", False] == "connect-failure,refused-stream"
    stream = when["/inference.GRPCInferenceService/ModelStreamInfer", False]
    assert stream == "connect-failure,refused-stream"
    assert when["/v2/models/s", False] is None


def test_calls_that_change_a_server_are_refused_by_default():
    table = make_table([state(A)])
    refused = [route for route in routes(table) if "direct_response" in route]
    paths = {
        each["match"].get("path_separated_prefix") or each["match"].get("path") for each in refused
    }
    assert "/v2/repository" in paths
    assert "/inference.GRPCInferenceService/RepositoryModelLoad" in paths
    assert not [route for route in routes(table, management=True) if "direct_response" in route]


def test_model_names_are_read_from_messages_only_if_they_decide_something():
    def reads(table, **options):
        return [
            route["match"]["path"] for route in routes(table, **options)
            if "route" in route and "typed_per_filter_config" not in route and "path" in route["match"]
            and route["match"]["path"].endswith("Infer")
        ]  # fmt: skip

    some = make_table([state(A, "x"), state(B)])
    assert reads(make_table([state(A, "x"), state(B, "x")])) == []
    assert reads(some) == ["/inference.GRPCInferenceService/ModelInfer"]
    assert reads(some, grpc_model_routes=False) == []


@pytest.mark.parametrize("policy", ["least-request", "round-robin", "load"])
def test_each_pool_has_a_cluster_per_protocol(policy):
    table = make_table([state(A, "x"), state(B)])
    document = clusters(table.pools, BalanceOptions(policy=policy))
    names = [each["name"] for each in document["resources"]]
    assert names[:2] == ["http-all", "grpc-all"]
    assert len(names) == 4
    ports = [
        endpoint["endpoint"]["address"]["socket_address"]["port_value"]
        for each in document["resources"]
        for endpoint in each["load_assignment"]["endpoints"][0]["lb_endpoints"]
    ]
    assert ports == [1, 3, 2, 4, 1, 2]


@pytest.mark.parametrize("policy", ["least-request", "round-robin", "load"])
def test_new_servers_start_slowly_unless_it_is_switched_off(policy):
    table = make_table([state(A, "x", "s", sequences=["s"])])
    found = {
        seconds: json.dumps(
            clusters(table.pools, BalanceOptions(policy=policy, slow_start_s=seconds))
        )
        for seconds in (0.0, 7.0)
    }
    assert "slow_start" not in found[0.0]
    # the pool of the model with sequences has none: its servers are not chosen by load
    assert found[7.0].count('"slow_start_window": "7.0s"') == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", ServerAddress("a", 1, 1)),
        ("a:1:2", ServerAddress("a", 1, 2)),
        (" [::1]:8000:8001 ", ServerAddress("::1", 8000, 8001)),
    ],
)
def test_backends(text, expected):
    assert parse_backend(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a:", "a:x", "a:1:2:3", ":1", "a:70000"])
def test_invalid_backends_are_named(text):
    with pytest.raises(InvalidBackend, match="expected HOST:PORT"):
        parse_backend(text)


def test_a_file_of_servers_is_read_again_and_mistakes_change_nothing(tmp_path):
    file = tmp_path / "servers"
    source = BackendSource(BalanceOptions(file=str(file)))
    with pytest.raises(OSError, match="servers"):
        source.read()
    file.write_text("# two\nh:1:2\n\nh:3:4 # second\nh:1:2\n")
    assert source.read() == (A, B)
    for mistake in ("", "h:x"):
        file.write_text(mistake)
        assert source.read() == (A, B)
    file.unlink()
    assert source.read() == (A, B)
    file.write_text("h:5:6")
    assert source.read() == (C,)


def test_a_name_has_a_server_per_address():
    (found,) = BackendSource(BalanceOptions(dns="127.0.0.1:8000:8001")).read()
    assert found == ServerAddress("127.0.0.1", 8000, 8001)
