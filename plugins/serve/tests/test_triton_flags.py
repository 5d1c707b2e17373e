from __future__ import annotations

import re
import typing

import msgspec
import pytest

from tritonpy.plugins import make_plugin_manager
from tritonpy_config.server import InvalidServerConfig, ServerConfig, decode_server_config
from tritonpy_serve.command import FLAGS
from tritonpy_serve.flag import Status, integer
from tritonpy_serve.overlay import BadFlags, Origins, overlay, read_flags
from tritonpy_serve.triton_flags import TRITON_FLAGS, device_setting, trace_level, trace_setting

# Triton 2.x as released; 'help' is argparse's own
NAMES = re.findall(
    r"\S+",
    """
id exit-timeout-secs log-verbose log-info log-warning log-error log-format log-file model-repository model-store
exit-on-error disable-auto-complete-config strict-readiness model-control-mode repository-poll-secs load-model
model-config-name model-load-thread-count model-load-retry-count model-namespacing enable-peer-access allow-http
http-address http-port reuse-http-port http-header-forward-pattern http-thread-count http-max-input-size
http-restricted-api allow-grpc grpc-address grpc-port reuse-grpc-port grpc-header-forward-pattern
grpc-infer-thread-count grpc-infer-allocation-pool-size grpc-max-response-pool-size grpc-use-ssl grpc-use-ssl-mutual
grpc-server-cert grpc-server-key grpc-root-cert grpc-infer-response-compression-level grpc-restricted-protocol
grpc-keepalive-time grpc-keepalive-timeout grpc-keepalive-permit-without-calls grpc-http2-max-pings-without-data
grpc-http2-min-recv-ping-interval-without-data grpc-http2-max-ping-strikes grpc-max-connection-age
grpc-max-connection-age-grace allow-sagemaker sagemaker-port sagemaker-safe-port-range sagemaker-thread-count
allow-vertex-ai vertex-ai-port vertex-ai-thread-count vertex-ai-default-model allow-metrics allow-gpu-metrics
allow-cpu-metrics metrics-address metrics-port metrics-interval-ms metrics-config trace-config backend-directory
backend-config repoagent-directory cache-config cache-directory rate-limit rate-limit-resource
pinned-memory-pool-byte-size cuda-memory-pool-byte-size cuda-virtual-address-size min-supported-compute-capability
buffer-manager-thread-count host-policy model-load-gpu-limit allow-client-shm strict-model-config
response-cache-byte-size trace-file trace-level trace-rate trace-count trace-log-frequency
""",
)


# flags that Triton has only for gRPC, and tritonpy's own
OWN = [
    f"http-{name}"
    for name in (
        "use-ssl",
        "use-ssl-mutual",
        "server-cert",
        "server-key",
        "root-cert",
        "generate-unknown-parameters",
    )
] + [
    "allow-openai",
    "default-max-tokens",
    "lora-separator",
    *(
        f"openai-{name}"
        for name in (
            "mount",
            "address",
            "port",
            "compat",
            "restricted-api",
            "use-ssl-mutual",
            "server-cert",
            "server-key",
            "root-cert",
        )
    ),
]


def test_every_flag_of_triton_is_known_once():
    assert sorted(flag.name for flag in TRITON_FLAGS) == sorted([*NAMES, *OWN])


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_has_a_status_and_a_help(flag):
    assert flag.help.endswith(".")
    if flag.status is Status.IMPLEMENTED:
        assert flag.path
        assert not flag.note
    else:
        assert flag.note
        assert not flag.path


def options_of_frontend(name: str) -> type[msgspec.Struct]:
    return make_plugin_manager().get("tritonpy_frontends", name, "frontend").load().Options


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS if flag.path and not flag.keyed], ids=lambda flag: flag.name
)
def test_the_key_that_a_flag_sets_exists(flag):
    kind: typing.Any = ServerConfig
    names = flag.path.split(".")
    if names[0] == "frontends":
        kind = options_of_frontend(names[1])
        names = names[2:]
    if names[:1] == ["cache"]:
        kind = (
            make_plugin_manager().get("tritonpy_caches", names[1], "response cache").load().Options
        )
        names = names[2:]
    if names[:2] == ["trace", "modes"]:
        kind = (
            make_plugin_manager().get("tritonpy_trace_sinks", names[2], "trace mode").load().Options
        )
        names = names[3:]
    for name in names:
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        assert name in fields
        kind = fields[name]
        kind = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind


def configured(raw=None, **given):
    flags = {name.replace("_", "-"): texts for name, texts in given.items()}
    return decode_server_config(overlay(raw, read_flags(TRITON_FLAGS, flags), Origins())).devices


def test_settings_are_per_gpu_and_the_last_use_counts():
    devices = configured(
        {"devices": {"cuda_memory_pool_byte_size": {"0": 1, "3": 7}}},
        cuda_memory_pool_byte_size=["0:1024", "1:2048", "0:4096"],
        model_load_gpu_limit=["0:0.5", "1:0.75"],
        pinned_memory_pool_byte_size=["1048576"],
        min_supported_compute_capability=["6.1"],
    )
    assert devices.cuda_memory_pool_byte_size == {"0": 4096, "1": 2048, "3": 7}
    assert devices.gpu_limits() == {0: 0.5, 1: 0.75}
    assert (devices.pinned_memory_pool_byte_size, devices.min_supported_compute_capability) == (
        1 << 20,
        6.1,
    )


def test_a_value_without_a_gpu_is_refused_in_triton_s_words():
    with pytest.raises(
        ValueError,
        match=r"^Cannot parse pair option due to incorrect number of inputs.--<pair option> ",
    ):
        device_setting(integer)("1024")


@pytest.mark.parametrize("text", ["a:1", "0:much", ":1", "0:"])
def test_gpu_and_value_must_be_numbers(text):
    with pytest.raises(
        BadFlags, match=r'Bad option: "--cuda-memory-pool-byte-size"\.\nInvalid option value\. Got '
    ):
        configured(cuda_memory_pool_byte_size=[text])


@pytest.mark.parametrize(
    ("text", "why"),
    [("-1:0.5", "expects device ID >= 0, got -1"), ("0:1.5", "range [0.0, 1.0], got 1.500000")],
)
def test_a_limit_is_checked_in_triton_s_words(text, why):
    with pytest.raises(InvalidServerConfig) as refusal:
        configured(model_load_gpu_limit=[text])
    assert why in str(refusal.value)


def merged(raw=None, **given):
    flags = {name.replace("_", "-"): texts for name, texts in given.items()}
    return overlay(raw, read_flags(TRITON_FLAGS, flags), Origins())["trace"]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("rate=5", ("", "rate", "5")),
        ("mode=OpenTelemetry", ("", "mode", "opentelemetry")),
        ("level=on", ("", "level", "TIMESTAMPS")),
        ("Triton,file=a,b=c", ("triton", "file", "a,b=c")),
        ("opentelemetry,resource=k=v", ("opentelemetry", "resource", "k=v")),
    ],
)
def test_settings_are_read(text, setting):
    assert trace_setting(text) == setting


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("level=LOUD", "invalid value for trace level option: LOUD"),
        (
            ",file=x",
            (
                "No trace mode specified. --trace-config option format is <trace mode>,<setting>=<value> or "
                "<setting>=<value>. Got ,file=x"
            ),
        ),
        ("rate", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate"),
        ("rate=", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate="),
        (
            "triton,=x",
            "--trace-config option format is '<trace mode>,<setting>=<value>'. Got triton,=x",
        ),
    ],
)
def test_an_invalid_setting_is_refused_in_triton_s_words(text, message):
    with pytest.raises(ValueError) as refused:
        trace_setting(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("names", "level"),
    [
        ("off FALSE", "OFF"),
        ("true on min max timestamps", "TIMESTAMPS"),
        ("tensors Tensors", "TENSORS"),
    ],
)
def test_levels_have_several_names(names, level):
    assert {trace_level(name) for name in names.split()} == {level}


def test_flags_fill_the_section_of_the_file_and_levels_and_resources_add_up():
    config = ["level=TIMESTAMPS", "level=TENSORS", "rate=2", "count=3", "mode=opentelemetry"]
    config += [
        "opentelemetry,resource=a=b",
        "opentelemetry,resource=c=d",
        "triton,log-frequency=4",
        "triton,file=f",
    ]
    assert merged(
        {"trace": {"level": ["OFF"], "modes": {"triton": {"log_frequency": 1}}}},
        trace_config=config,
    ) == {
        "level": ["TIMESTAMPS", "TENSORS"],
        "rate": "2",
        "count": "3",
        "mode": "opentelemetry",
        "modes": {
            "opentelemetry": {"resource": ["a=b", "c=d"]},
            "triton": {"log_frequency": "4", "file": "f"},
        },
    }


def test_deprecated_flags_have_the_same_meaning():
    assert merged(
        trace_file=["f"],
        trace_level=["MIN", "tensors"],
        trace_rate=["5"],
        trace_count=["6"],
        trace_log_frequency=["7"],
    ) == {
        "modes": {"triton": {"file": "f", "log_frequency": 7}},
        "level": ["TIMESTAMPS", "TENSORS"],
        "rate": 5,
        "count": 6,
    }


def test_an_invalid_level_is_named():
    with pytest.raises(BadFlags, match="invalid value for trace level option: LOUD"):
        merged(trace_config=["level=LOUD"])
