from __future__ import annotations

import pytest

from tritonpy_config.problem import ConfigProblem, Position, Positions
from tritonpy_config.server import decode_server_config
from tritonpy_config.server.sections import DEFAULT_QUANTILES, LatencySettings, parse_quantiles
from tritonpy_serve.command import FLAGS
from tritonpy_serve.overlay import BadFlags, Origins, overlay, read_flags, with_file_options


def merged(raw, origins=None, **given):
    flags = read_flags(FLAGS, {name.replace("_", "-"): texts for name, texts in given.items()})
    return overlay(raw, flags, origins or Origins())


def refusal(**given):
    with pytest.raises(BadFlags) as caught:
        merged(None, **given)
    return str(caught.value)


def test_a_flag_overrides_the_file_and_does_not_change_it():
    raw = {"control": {"mode": "poll", "threads": 2}, "id": "a"}
    assert merged(raw, model_control_mode=["explicit"]) == {
        "control": {"mode": "explicit", "threads": 2},
        "id": "a",
    }
    assert raw["control"]["mode"] == "poll"


def test_a_flag_finds_the_key_in_either_spelling():
    assert merged({"exit-on-error": True}, exit_on_error=["false"]) == {"exit-on-error": False}


def test_the_last_use_of_a_flag_counts():
    assert merged(None, id=["a", "b"]) == {"id": "b"}


def test_a_repeated_flag_replaces_the_list_of_the_file():
    raw = {"repositories": [{"url": "old"}]}
    result = merged(raw, model_repository=["a", "b"], model_store=["c"])
    assert [each["url"] for each in result["repositories"]] == ["a", "b", "c"]
    assert merged(None, load_model=["a", "b"]) == {"control": {"load": ["a", "b"]}}


def test_a_frontend_is_turned_off_whatever_else_is_set():
    assert merged(None, allow_http=["false"], http_port=["1"]) == {"frontends": {"http": False}}
    assert merged({"frontends": {"http": {"port": 2}}}, allow_http=["0"]) == {
        "frontends": {"http": False}
    }


def test_turning_a_frontend_on_keeps_its_settings():
    raw = {"frontends": {"http": {"port": 2}, "grpc": False, "metrics": None}}
    result = merged(raw, allow_http=["on"], allow_grpc=["on"], grpc_port=["1"], metrics_port=["3"])
    assert result == {
        "frontends": {"http": {"port": 2}, "grpc": {"port": 1}, "metrics": {"port": 3}}
    }


def test_cache_options_are_collected_and_the_old_flag_sets_the_local_cache():
    given = ["redis,host=a", "redis,port=1"]
    assert merged(None, cache_config=given) == {"cache": {"redis": {"host": "a", "port": "1"}}}
    assert merged(None, response_cache_byte_size=["4096"]) == {"cache": {"local": {"size": 4096}}}


def test_options_of_backends_go_to_one_or_to_all():
    assert merged(None, backend_config=["onnxruntime,a=1", "onnxruntime,b=2", "c=3"]) == {
        "backends": {"onnxruntime": {"a": "1", "b": "2"}},
        "backend_defaults": {"c": "3"},
    }


def test_settings_of_metrics_are_options_of_their_frontend():
    assert merged(None, metrics_config=["counter_latencies=false"]) == {
        "frontends": {"metrics": {"counter_latencies": "false"}}
    }


def test_distributions_of_latencies_are_measured_by_the_server_itself():
    settings = [
        "histogram_latencies=true",
        "summary_latencies=true",
        "summary_quantiles=0.5:0.05,0.9:0.01",
    ]
    result = merged({"frontends": {"metrics": False}}, metrics_config=settings)
    assert result == {
        "frontends": {"metrics": False},
        "latencies": {"histograms": "true", "summaries": "true", "quantiles": "0.5:0.05,0.9:0.01"},
    }
    assert decode_server_config(result).latencies == LatencySettings(
        True, True, "0.5:0.05,0.9:0.01"
    )


@pytest.mark.parametrize(
    ("text", "quantiles", "warning"),
    [
        ("0.1:0.0.1", "0.1:0.0001", "'0.1:0.0.1' is read as 0.1:0.0001"),
        ("0.9:0.01,0.1:0.0.1", "0.9:0.01,0.1:0.0001", "'0.1:0.0.1' is read as 0.1:0.0001"),
        ("0.5abc:0.05xyz", "0.5:0.05", "'0.5abc:0.05xyz' is read as 0.5:0.05"),
        ("0.1:0.2:0.3", "0.1:0.2", "'0.1:0.2:0.3' is read as 0.1:0.2"),
        ("0.5:2", "0.5:0.999", "'0.5:2' is read as 0.5:0.999"),
        (
            "0.5:0.05,half",
            "0.5:0.05",
            "Invalid option: [half]. No ':' delimiter found. Expected format is <quantile>:<error>",
        ),
        ("0.5:0.05,0.9:", "0.5:0.05", "Invalid option: [0.9:]. Error: stod"),
        ("0.5:0.05,1.5:0.1", "0.5:0.05", "'1.5:0.1' is ignored: a quantile is between 0 and 1"),
        ("half", DEFAULT_QUANTILES, "no quantile is left, the default ones are used"),
    ],
)
def test_quantiles_are_read_as_leniently_as_in_triton_with_a_warning(text, quantiles, warning):
    flags = read_flags(FLAGS, {"metrics-config": [f"summary_quantiles={text}"]})
    assert flags.warnings[-1] == f"--metrics-config: summary_quantiles: {warning}"
    result = overlay(None, flags, Origins())
    assert result == {"latencies": {"quantiles": quantiles}}
    assert decode_server_config(result).latencies.quantiles == quantiles


def test_valid_quantiles_cause_no_warning():
    flags = read_flags(FLAGS, {"metrics-config": ["summary_quantiles= 0.5 : 0.05,1e-1:0.01,"]})
    assert flags.warnings == []
    quantiles = overlay(None, flags, Origins())["latencies"]["quantiles"]
    assert parse_quantiles(quantiles) == {0.5: 0.05, 0.1: 0.01}


def test_a_bad_setting_is_reported_for_its_flag():
    origins = Origins()
    merged(None, origins, metrics_config=["summary_quantiles=half"])
    located = origins.locate(ConfigProblem("latencies.quantiles", "wrong"))
    assert located.path == "--metrics-config"


def test_the_new_name_of_a_flag_wins_over_its_deprecated_one():
    result = merged(None, disable_auto_complete_config=["true"], strict_model_config=["false"])
    assert result == {"disable_auto_complete": True}


def test_every_bad_flag_is_reported():
    assert refusal(http_port=["abc"], allow_grpc=["maybe"]).splitlines() == [
        'Bad option: "--http-port".',
        "Invalid option value. Got abc",
        "--http-port takes the number of a port, such as 8000.",
        'Bad option: "--allow-grpc".',
        "invalid value for bool option: maybe",
        "--allow-grpc takes true or false.",
    ]


def test_a_flag_without_effect_is_noted_and_sets_nothing():
    flags = read_flags(FLAGS, {"http-thread-count": ["3"]})
    assert flags.notes == [
        "--http-thread-count has no effect: one event loop serves every connection"
    ]
    assert overlay(None, flags, Origins()) == {}


def test_problems_are_located_at_the_flag_or_in_the_file():
    origins = Origins(Positions({"frontends.http": Position(3, 5), "control.mode": Position(1, 1)}))
    merged(
        {"frontends": {"http": {"prot": 1}}},
        origins,
        http_port=["8"],
        load_model=["a"],
        allow_http=["on"],
    )
    assert [
        str(origins.locate(ConfigProblem(path, "odd")))
        for path in (
            "frontends.http.port",
            "control.load[0]",
            "frontends.http.prot",
            "control.mode",
            "id",
        )
    ] == [
        "--http-port: odd",
        "--load-model: odd",
        "line 3, column 5: frontends.http.prot: odd",
        "line 1, column 1: control.mode: odd",
        "id: odd",
    ]


@pytest.mark.parametrize("raw", [["a"], "text", {"frontends": ["http"]}])
def test_a_file_that_is_no_mapping_is_left_to_decoding(raw):
    assert merged(raw, http_port=["1"]) == raw


def test_a_transport_flag_keeps_the_options_of_the_file():
    file, origins = {"transport": {"ship": {"speed": 2}}}, Origins(flags={"transport": "transport"})
    assert with_file_options({"transport": "ship"}, file, origins) == file
    assert origins.flags == {}
    assert with_file_options({"transport": "none"}, file, origins) == {"transport": "none"}
    assert with_file_options({"transport": "ship"}, None, origins) == {"transport": "ship"}
