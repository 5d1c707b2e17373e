"""Every flag of Triton 2.x's server and what it means here, in Triton's groups."""

from __future__ import annotations

from tritonpy.cli.device_flag import device_setting
from tritonpy.cli.flag import (
    Flag,
    Parse,
    Status,
    at_least_one,
    boolean,
    choice,
    integer,
    integer_or_boolean,
    not_empty,
    not_negative,
    number,
    plain,
    repository,
    setting,
)
from tritonpy.cli.instance_flags import fewest, host_setting, resource
from tritonpy.cli.protocol_flags import GRPC, HTTP
from tritonpy.cli.trace_flag import trace_level, trace_setting
from tritonpy.config.server.latency_settings import read_lenient_quantiles


def _none(name: str, group: str, parse: Parse, text: str, note: str) -> Flag:
    return Flag(name, group, parse, text, Status.NO_EFFECT, note=note)


def _no(
    name: str, group: str, parse: Parse, text: str, note: str, *, default: str = "", repeated: bool = False
) -> Flag:
    return Flag(name, group, parse, text, Status.REFUSED, note=note, default=default, repeated=repeated)


_GPU_MEMORY = "the frameworks manage the memory of their GPUs"
_TRACE = "tracing is not available yet"
_SAGEMAKER = "the SageMaker endpoint is not available yet; use HTTP or gRPC"
_VERTEX = "the Vertex AI endpoint is not available yet; use HTTP or gRPC"
_PACKAGES = "plugins are Python packages, found where pip installs them"

_G = "Server"
SERVER = (
    Flag("id", _G, plain, "Name of this server in its metadata.", path="id"),
    Flag("exit-timeout-secs", _G, not_negative, "Seconds to wait for live requests on exit.", path="exit_timeout_s"),
)

_G = "Logging"
LOGGING = (
    Flag("log-verbose", _G, integer_or_boolean, "Verbose level, 0 for none.", path="logging.verbose"),
    Flag("log-info", _G, boolean, "Log what happens.", path="logging.info"),
    Flag("log-warning", _G, boolean, "Log warnings.", path="logging.warning"),
    Flag("log-error", _G, boolean, "Log errors.", path="logging.error"),
    Flag(
        "log-format",
        _G,
        choice("log-format", "default", "ISO8601", "json", fold=False),
        "default (LMMDD hh:mm:ss.ssssss), ISO8601 (YYYY-MM-DDThh:mm:ssZ L), or json: one object per line.",
        path="logging.format",
    ),
    Flag("log-file", _G, plain, "Append log lines to this file.", path="logging.file"),
)

_G = "Model Repository"
REPOSITORY = (
    Flag(
        "model-repository",
        _G,
        repository,
        "Folder or URL of models; once per repository.",
        path="repositories",
        repeated=True,
    ),
    Flag("model-store", _G, repository, "The same as --model-repository.", path="repositories", repeated=True),
    Flag(
        "exit-on-error",
        _G,
        boolean,
        "Exit when a model fails to load at start, or a repository cannot be read.",
        path="exit_on_error",
    ),
    Flag(
        "disable-auto-complete-config",
        _G,
        boolean,
        "Take config.pbtxt as it is.",
        path="disable_auto_complete",
        bare=True,
    ),
    Flag("strict-readiness", _G, boolean, "Ready only when every model is.", path="strict_readiness"),
    Flag(
        "model-control-mode",
        _G,
        choice("model-control-mode", "none", "poll", "explicit"),
        "none: load all models at start; poll: follow the repositories; explicit: load on request.",
        path="control.mode",
    ),
    Flag("repository-poll-secs", _G, integer, "Seconds between two polls.", path="control.interval_s"),
    Flag(
        "load-model",
        _G,
        plain,
        "Model to load at start in mode explicit; once per model, or * alone for all.",
        path="control.load",
        repeated=True,
    ),
    Flag(
        "model-config-name",
        _G,
        not_empty("model-config-name"),
        "Read configs/NAME.pbtxt of a model where it exists.",
        path="model_config_name",
    ),
    Flag("model-load-thread-count", _G, at_least_one, "How many models load at the same time.", path="control.threads"),
    Flag("model-load-retry-count", _G, not_negative, "How often a failed load is tried again.", path="control.retries"),
    Flag(
        "model-namespacing",
        _G,
        boolean,
        "Let repositories hold models of the same name; an ensemble finds those of its own repository first.",
        path="model_namespacing",
    ),
    _none("enable-peer-access", _G, boolean, "Let GPUs reach each other's memory.", _GPU_MEMORY),
)

_G = "Sagemaker"
SAGEMAKER = (
    _no("allow-sagemaker", _G, boolean, "Serve SageMaker.", _SAGEMAKER, default="false"),
    _no("sagemaker-port", _G, integer, "Port for SageMaker.", _SAGEMAKER, default="8080"),
    _no("sagemaker-safe-port-range", _G, plain, "Ports that others may use.", _SAGEMAKER),
    _no("sagemaker-thread-count", _G, integer, "Threads for SageMaker.", _SAGEMAKER, default="8"),
)

_G = "Vertex"
VERTEX = (
    _no("allow-vertex-ai", _G, boolean, "Serve Vertex AI.", _VERTEX, default="false"),
    _no("vertex-ai-port", _G, integer, "Port for Vertex AI.", _VERTEX, default="8080"),
    _no("vertex-ai-thread-count", _G, integer, "Threads for Vertex AI.", _VERTEX, default="8"),
    _no("vertex-ai-default-model", _G, plain, "The model that serves plain requests.", _VERTEX),
)


def _revise_metrics_settings(values: list[tuple[str, str, str]]) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Read quantiles as leniently as Triton does."""
    revised: list[tuple[str, str, str]] = []
    warnings: list[str] = []
    for name, key, text in values:
        if not name and key == "summary_quantiles":
            quantiles, found = read_lenient_quantiles(text)
            warnings += found
            revised.append((name, key, quantiles))
        else:
            revised.append((name, key, text))
    return revised, warnings


_G = "Metrics"
METRICS = (
    Flag("allow-metrics", _G, boolean, "Serve metrics.", path="frontends.metrics"),
    Flag("allow-gpu-metrics", _G, boolean, "Metrics of GPUs.", path="frontends.metrics.gpu"),
    Flag("allow-cpu-metrics", _G, boolean, "Metrics of the processor.", path="frontends.metrics.cpu"),
    Flag(
        "metrics-address", _G, plain, "Address to bind to; --http-address if not given.", path="frontends.metrics.host"
    ),
    Flag("metrics-port", _G, integer, "Port, 8002 if not given.", path="frontends.metrics.port"),
    Flag("metrics-interval-ms", _G, integer, "Milliseconds between two samples.", path="frontends.metrics.interval_ms"),
    Flag(
        "metrics-config",
        _G,
        setting("metrics-config"),
        "A setting of the metrics: counter_latencies=false, histogram_latencies=true, summary_latencies=true, "
        "summary_quantiles=<quantile>:<error>,...; once per setting.",
        path="frontends.metrics",
        repeated=True,
        keyed=True,
        elsewhere={
            "histogram_latencies": "latencies.histograms",
            "summary_latencies": "latencies.summaries",
            "summary_quantiles": "latencies.quantiles",
        },
        revise=_revise_metrics_settings,
        metavar="SETTING=VALUE",
    ),
)

_G = "Tracing"
TRACING = (
    Flag(
        "trace-config",
        _G,
        trace_setting,
        "level=OFF|TIMESTAMPS|TENSORS, rate=<N>, count=<N> or mode=triton|opentelemetry; with the mode before it one of the mode's own: "
        "triton,file=<path>, triton,log-frequency=<N>, opentelemetry,url=<url>, opentelemetry,resource=<key>=<value>; once per setting.",
        path="trace.modes",
        repeated=True,
        keyed=True,
        elsewhere={name: f"trace.{name}" for name in ("mode", "level", "rate", "count")},
        lists=frozenset({"level", "resource"}),
        metavar="[MODE,]SETTING=VALUE",
    ),
)

_G = "Backend"
BACKEND = (
    Flag("backend-directory", _G, plain, "Folder of Python-based backends.", path="backend_directory"),
    Flag(
        "backend-config",
        _G,
        setting("backend-config", "backend"),
        "An option of a backend, or of all backends without a name; once per option.",
        path="backends",
        repeated=True,
        keyed=True,
        metavar="[NAME,]SETTING=VALUE",
    ),
)

_G = "Repository Agent"
AGENT = (_none("repoagent-directory", _G, plain, "Folder of repository agents.", _PACKAGES),)

_G = "Response Cache"
CACHE = (
    Flag(
        "cache-config",
        _G,
        setting("cache-config", "cache", required=True),
        "An option of the response cache, once per option: local,size=64MiB, or redis,host=<name>.",
        path="cache",
        repeated=True,
        keyed=True,
        metavar="CACHE,OPTION=VALUE",
    ),
    _none("cache-directory", _G, plain, "Folder of caches.", _PACKAGES),
)

_G = "Rate Limiter"
LIMITER = (
    Flag(
        "rate-limit",
        _G,
        choice("rate-limit", "execution_count", "off"),
        "off: every idle instance executes; execution_count: those whose resources are free, in the order of priority and executions.",
        path="rate_limit.mode",
    ),
    Flag(
        "rate-limit-resource",
        _G,
        resource,
        "How much there is of a resource, on every device or on one; once per resource. Otherwise as much as the neediest instance needs.",
        path="rate_limit.resources",
        repeated=True,
        keyed=True,
        combine=fewest,
        metavar="NAME:COUNT[:DEVICE]",
    ),
)

_G = "Memory/Device Management"
MEMORY = (
    Flag(
        "pinned-memory-pool-byte-size",
        _G,
        integer,
        "Host memory that GPUs copy from and to at full speed, for the inputs and outputs of models; taken when a model needs it first.",
        path="devices.pinned_memory_pool_byte_size",
    ),
    Flag(
        "cuda-memory-pool-byte-size",
        _G,
        device_setting(integer),
        "Memory of a GPU for the inputs and outputs of models, 64 MiB if not given; once per GPU.",
        path="devices.cuda_memory_pool_byte_size",
        repeated=True,
        keyed=True,
        metavar="GPU:BYTES",
    ),
    _none("cuda-virtual-address-size", _G, plain, "Address space for implicit state.", _GPU_MEMORY),
    Flag(
        "min-supported-compute-capability",
        _G,
        number,
        "GPUs of a lower CUDA compute capability are not used.",
        path="devices.min_supported_compute_capability",
    ),
    _none(
        "buffer-manager-thread-count",
        _G,
        integer,
        "Threads that copy tensors.",
        "a batch is copied once, by its instance",
    ),
    Flag(
        "host-policy",
        _G,
        host_setting,
        "numa-node=<id> or cpu-cores=<first>-<last>,... of a host policy (cpu, gpu_<id>, model, or one that instance groups name); "
        "once per setting.",
        path="host_policies",
        repeated=True,
        keyed=True,
        metavar="POLICY,SETTING=VALUE",
    ),
    Flag(
        "model-load-gpu-limit",
        _G,
        device_setting(number),
        "Which part of a GPU's memory, from 0 to 1, may be in use when a model was loaded; more fails the load. Once per GPU.",
        path="devices.model_load_gpu_limit",
        repeated=True,
        keyed=True,
        metavar="GPU:FRACTION",
    ),
)

_G = "Shared Memory"
SHARED_MEMORY = (
    Flag(
        "allow-client-shm",
        _G,
        boolean,
        "Let clients register shared memory (of the host, or of GPUs) for inputs and outputs.",
        path="allow_client_shm",
    ),
)

_G = "DEPRECATED"
DEPRECATED = (
    Flag(
        "strict-model-config", _G, boolean, "Old name of --disable-auto-complete-config.", path="disable_auto_complete"
    ),
    Flag("response-cache-byte-size", _G, integer, "Old form of --cache-config local,size=.", path="cache.local.size"),
    Flag("trace-file", _G, plain, "Old form of --trace-config triton,file=.", path="trace.modes.triton.file"),
    Flag("trace-level", _G, trace_level, "Old form of --trace-config level=.", path="trace.level", repeated=True),
    Flag("trace-rate", _G, integer, "Old form of --trace-config rate=.", path="trace.rate"),
    Flag("trace-count", _G, integer, "Old form of --trace-config count=.", path="trace.count"),
    Flag(
        "trace-log-frequency",
        _G,
        integer,
        "Old form of --trace-config triton,log-frequency=.",
        path="trace.modes.triton.log_frequency",
    ),
)

TRITON_FLAGS: tuple[Flag, ...] = (
    *SERVER,
    *LOGGING,
    *REPOSITORY,
    *HTTP,
    *GRPC,
    *SAGEMAKER,
    *VERTEX,
    *METRICS,
    *TRACING,
    *BACKEND,
    *AGENT,
    *CACHE,
    *LIMITER,
    *MEMORY,
    *SHARED_MEMORY,
    *DEPRECATED,
)
