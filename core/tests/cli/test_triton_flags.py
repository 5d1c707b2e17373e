from __future__ import annotations

import re
import typing

import msgspec
import pytest

from tritonpy.cli.flag import Status
from tritonpy.cli.serve import FLAGS
from tritonpy.cli.triton_flags import TRITON_FLAGS
from tritonpy.config.server import ServerConfig
from tritonpy.plugins import make_plugin_manager

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
    for name in ("use-ssl", "use-ssl-mutual", "server-cert", "server-key", "root-cert", "generate-unknown-parameters")
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


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.status is Status.REFUSED], ids=lambda flag: flag.name)
def test_the_default_of_a_refused_flag_can_be_read(flag):
    assert not flag.default or flag.parse(flag.default) is not None


def options_of_frontend(name: str) -> type[msgspec.Struct]:
    return make_plugin_manager().get("tritonpy_frontends", name, "frontend").load().Options


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.path and not flag.keyed], ids=lambda flag: flag.name)
def test_the_key_that_a_flag_sets_exists(flag):
    kind: typing.Any = ServerConfig
    names = flag.path.split(".")
    if names[0] == "frontends":
        kind = options_of_frontend(names[1])
        names = names[2:]
    if names[:1] == ["cache"]:
        kind = make_plugin_manager().get("tritonpy_caches", names[1], "response cache").load().Options
        names = names[2:]
    if names[:2] == ["trace", "modes"]:
        kind = make_plugin_manager().get("tritonpy_trace_sinks", names[2], "trace mode").load().Options
        names = names[3:]
    for name in names:
        fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
        assert name in fields
        kind = fields[name]
        kind = typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind
