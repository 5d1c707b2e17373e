"""Every flag of Triton 2.x's server with its support in tritonpy, in Triton's groups."""

from __future__ import annotations

from tritonpy.config import read_lenient_quantiles
from tritonpy_serve.flag import (
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
from tritonpy_serve.protocol_flags import GRPC, HTTP, LOOP, OPENAI

_HOST_SETTINGS = ("numa-node", "cpu-cores")


_FORM = "--trace-config option format is '<trace mode>,<setting>=<value>'. Got {}"
_LEVELS = {
    "off": "OFF",
    "false": "OFF",
    "on": "TIMESTAMPS",
    "true": "TIMESTAMPS",
    "min": "TIMESTAMPS",
    "max": "TIMESTAMPS",
    "timestamps": "TIMESTAMPS",
    "tensors": "TENSORS",
}


def trace_level(text: str) -> str:
    """Return the name of a trace level. Raises ValueError with Triton's text."""
    try:
        return _LEVELS[text.lower()]
    except KeyError:
        raise ValueError(f"invalid value for trace level option: {text}") from None


def trace_setting(text: str) -> tuple[str, str, str]:
    """Return mode ("" for all modes), setting and value of `[mode,]setting=value`.

    Raises ValueError with Triton's text.
    """
    head, equals, value = text.partition("=")
    mode, comma, key = head.partition(",")
    if comma and not mode:
        raise ValueError(
            "No trace mode specified. --trace-config option format is <trace "
            "mode>,<setting>=<value> or "
            f"<setting>=<value>. Got {text}"
        )
    if not comma:
        mode, key = "", head
    if not equals or not key or not value:
        raise ValueError(_FORM.format(text))
    if not mode and key == "level":
        value = trace_level(value)
    if not mode and key == "mode":
        value = value.lower()
    return mode.lower(), key, value


def resource(text: str) -> tuple[str, str, int]:
    """Parse `<name>:<count>[:<device>]` and return ("", key under `rate_limit.resources`, count).

    Raises ValueError with Triton's text.
    """
    name, *numbers = text.split(":")
    if len(numbers) not in {1, 2}:
        raise ValueError(
            "--rate-limit-resource option format is '<resource_name>:<count>:<device>' or "
            "'<resource_name>:<count>'. "
            f"Got {text}"
        )
    count, *device = [integer(number) for number in numbers]
    return "", ":".join([name, *map(str, device)]), count


def smallest_counts(resources: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Return each resource once, with its smallest count, as Triton does."""
    counts: dict[str, int] = {}
    for _, key, count in resources:
        counts[key] = min(count, counts.get(key, count))
    return [("", key, count) for key, count in counts.items()]


def host_setting(text: str) -> tuple[str, str, str]:
    """Return policy, setting and value of `<policy>,<setting>=<value>`.

    Raises ValueError with Triton's text.
    """
    policy, _, rest = text.partition(",")
    setting, _, value = rest.partition("=")
    if not (policy and setting and value):
        raise ValueError(
            f"--host-policy option format is '<policy name>,<setting>=<value>'. Got {text}"
        )
    if setting not in _HOST_SETTINGS:
        raise ValueError(
            f"Unsupported host policy setting '{setting}' is specified, supported settings are "
            "'numa-node', 'cpu-cores'"
        )
    return policy, setting, value


def device_setting(parse: Parse) -> Parse:
    """Return a parser for `<gpu>:<value>` that returns ("", GPU, value); `parse` reads the value.

    The parser raises ValueError with Triton's text.
    """

    def read(text: str) -> tuple[str, str, object]:
        device, colon, value = text.partition(":")
        if not colon:
            raise ValueError(
                "Cannot parse pair option due to incorrect number of inputs."
                f"--<pair option> argument requires format <first>:<second>. Found: {text}"
            )
        return "", str(integer(device)), parse(value)

    return read


def _no_effect(name: str, group: str, parse: Parse, text: str, note: str) -> Flag:
    return Flag(name, group, parse, text, Status.NO_EFFECT, note=note)


_GPU_MEMORY = "frameworks manage GPU memory themselves"

_G = "Server"
SERVER = (
    Flag("id", _G, plain, "Name of this server in the server metadata.", path="id"),
    Flag(
        "exit-timeout-secs",
        _G,
        not_negative,
        "Seconds to wait for requests in flight on exit.",
        path="exit_timeout_s",
    ),
)

_G = "Logging"
LOGGING = (
    Flag(
        "log-verbose", _G, integer_or_boolean, "Verbose level, 0 for none.", path="logging.verbose"
    ),
    Flag("log-info", _G, boolean, "Log info messages.", path="logging.info"),
    Flag("log-warning", _G, boolean, "Log warnings.", path="logging.warning"),
    Flag("log-error", _G, boolean, "Log errors.", path="logging.error"),
    Flag(
        "log-format",
        _G,
        choice("log-format", "default", "ISO8601", "json", fold=False),
        (
            "default (LMMDD hh:mm:ss.ssssss), ISO8601 (YYYY-MM-DDThh:mm:ssZ L), or json: "
            "one object per line."
        ),
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
        "Folder or URL with models. Repeat it per repository.",
        path="repositories",
        repeated=True,
    ),
    Flag(
        "model-store",
        _G,
        repository,
        "Alias of --model-repository.",
        path="repositories",
        repeated=True,
    ),
    Flag(
        "exit-on-error",
        _G,
        boolean,
        "Exit if a model fails to load at start, or a repository cannot be read.",
        path="exit_on_error",
    ),
    Flag(
        "disable-auto-complete-config",
        _G,
        boolean,
        "Do not complete config.pbtxt automatically.",
        path="disable_auto_complete",
        bare=True,
    ),
    Flag(
        "strict-readiness",
        _G,
        boolean,
        "Report ready only if all models are ready.",
        path="strict_readiness",
    ),
    Flag(
        "model-control-mode",
        _G,
        choice("model-control-mode", "none", "poll", "explicit"),
        (
            "none: load all models at start. poll: load changes of the repositories. explicit: "
            "load on request."
        ),
        path="control.mode",
    ),
    Flag(
        "repository-poll-secs",
        _G,
        integer,
        "Seconds between polls of the repositories.",
        path="control.interval_s",
    ),
    Flag(
        "load-model",
        _G,
        plain,
        (
            "Model to load at start in explicit mode. Repeat it per model, "
            "or use * alone for all models."
        ),
        path="control.load",
        repeated=True,
    ),
    Flag(
        "model-config-name",
        _G,
        not_empty("model-config-name"),
        "Read configs/NAME.pbtxt instead of config.pbtxt, if a model has it.",
        path="model_config_name",
    ),
    Flag(
        "model-load-thread-count",
        _G,
        at_least_one,
        "Number of models that load at the same time.",
        path="control.threads",
    ),
    Flag(
        "model-load-retry-count",
        _G,
        not_negative,
        "Number of retries after a failed load.",
        path="control.retries",
    ),
    Flag(
        "model-namespacing",
        _G,
        boolean,
        (
            "Allow models of the same name in several repositories. An ensemble prefers models "
            "of its own repository."
        ),
        path="model_namespacing",
    ),
    _no_effect("enable-peer-access", _G, boolean, "Enable peer access between GPUs.", _GPU_MEMORY),
)

_G = "Sagemaker"
SAGEMAKER = (
    Flag("allow-sagemaker", _G, boolean, "Serve SageMaker.", path="frontends.sagemaker"),
    Flag("sagemaker-port", _G, integer, "Port (default 8080).", path="frontends.sagemaker.port"),
    Flag(
        "sagemaker-safe-port-range",
        _G,
        plain,
        "Ports that the other endpoints may use, as 8081-9000.",
        path="frontends.sagemaker.safe_port_range",
        metavar="A-B",
    ),
    _no_effect("sagemaker-thread-count", _G, integer, "Number of threads.", LOOP),
)

_G = "Vertex"
VERTEX = (
    Flag(
        "allow-vertex-ai",
        _G,
        boolean,
        "Serve Vertex AI (default: if AIP_MODE is PREDICTION).",
        path="frontends.vertex",
    ),
    Flag(
        "vertex-ai-port",
        _G,
        integer,
        "Port (default: $AIP_HTTP_PORT, 8080).",
        path="frontends.vertex.port",
    ),
    _no_effect("vertex-ai-thread-count", _G, integer, "Number of threads.", LOOP),
    Flag(
        "vertex-ai-default-model",
        _G,
        plain,
        "Model of predictions (default: the only model).",
        path="frontends.vertex.default_model",
    ),
)


def _revise_metrics_settings(
    values: list[tuple[str, str, str]],
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Read summary quantiles as leniently as Triton does."""
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
    Flag("allow-gpu-metrics", _G, boolean, "Report GPU metrics.", path="frontends.metrics.gpu"),
    Flag("allow-cpu-metrics", _G, boolean, "Report CPU metrics.", path="frontends.metrics.cpu"),
    Flag(
        "metrics-address",
        _G,
        plain,
        "Address to bind to (default: --http-address).",
        path="frontends.metrics.host",
    ),
    Flag("metrics-port", _G, integer, "Port (default 8002).", path="frontends.metrics.port"),
    Flag(
        "metrics-interval-ms",
        _G,
        integer,
        "Milliseconds between samples.",
        path="frontends.metrics.interval_ms",
    ),
    Flag(
        "metrics-config",
        _G,
        setting("metrics-config"),
        "Metrics setting: counter_latencies=false, histogram_latencies=true, "
        "summary_latencies=true, or "
        "summary_quantiles=<quantile>:<error>,... Repeat it per setting.",
        path="frontends.metrics",
        repeated=True,
        keyed=True,
        other_paths={
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
        "Trace setting: level=OFF|TIMESTAMPS|TENSORS, rate=<N>, count=<N>, "
        "mode=triton|opentelemetry, or a setting of a mode: "
        "triton,file=<path>, triton,log-frequency=<N>, opentelemetry,url=<url>, "
        "opentelemetry,resource=<key>=<value>. "
        "Repeat it per setting.",
        path="trace.modes",
        repeated=True,
        keyed=True,
        other_paths={name: f"trace.{name}" for name in ("mode", "level", "rate", "count")},
        lists=frozenset({"level", "resource"}),
        metavar="[MODE,]SETTING=VALUE",
    ),
)

_G = "Backend"
BACKEND = (
    Flag(
        "backend-directory",
        _G,
        plain,
        "Folder with Python-based backends.",
        path="backend_directory",
    ),
    Flag(
        "backend-config",
        _G,
        setting("backend-config", "backend"),
        "Option of a backend, or of all backends without NAME. Repeat it per option.",
        path="backends",
        repeated=True,
        keyed=True,
        metavar="[NAME,]SETTING=VALUE",
    ),
)

_G = "Repository Agent"
AGENT = (
    Flag(
        "repoagent-directory",
        _G,
        plain,
        "Folder with repository agents in C.",
        path="repo_agent_directory",
    ),
)

_G = "Response Cache"
CACHE = (
    Flag(
        "cache-config",
        _G,
        setting("cache-config", "cache", required=True),
        (
            "Option of the response cache, such as local,size=64MiB or redis,host=<name>. "
            "Repeat it per option."
        ),
        path="cache",
        repeated=True,
        keyed=True,
        metavar="CACHE,OPTION=VALUE",
    ),
    Flag("cache-directory", _G, plain, "Folder with caches in C.", path="cache_directory"),
)

_G = "Rate Limiter"
LIMITER = (
    Flag(
        "rate-limit",
        _G,
        choice("rate-limit", "execution_count", "off"),
        (
            "off: every idle instance may execute. execution_count: instances with free "
            "resources execute, by priority and execution count."
        ),
        path="rate_limit.mode",
    ),
    Flag(
        "rate-limit-resource",
        _G,
        resource,
        (
            "Number of units of a resource, per device or on one device. Default: "
            "the largest demand of one instance. Repeat it per resource."
        ),
        path="rate_limit.resources",
        repeated=True,
        keyed=True,
        combine=smallest_counts,
        metavar="NAME:COUNT[:DEVICE]",
    ),
)

_G = "Memory/Device Management"
MEMORY = (
    Flag(
        "pinned-memory-pool-byte-size",
        _G,
        integer,
        (
            "Size of the pinned host memory for inputs and outputs of models on GPUs, "
            "allocated at its first use."
        ),
        path="devices.pinned_memory_pool_byte_size",
    ),
    Flag(
        "cuda-memory-pool-byte-size",
        _G,
        device_setting(integer),
        (
            "Size of a GPU's memory pool for inputs and outputs of models (default 64 MiB). "
            "Repeat it per GPU."
        ),
        path="devices.cuda_memory_pool_byte_size",
        repeated=True,
        keyed=True,
        metavar="GPU:BYTES",
    ),
    _no_effect(
        "cuda-virtual-address-size", _G, plain, "Address space for implicit state.", _GPU_MEMORY
    ),
    Flag(
        "min-supported-compute-capability",
        _G,
        number,
        "Minimum CUDA compute capability: other GPUs are not used.",
        path="devices.min_supported_compute_capability",
    ),
    _no_effect(
        "buffer-manager-thread-count",
        _G,
        integer,
        "Number of threads that copy tensors.",
        "the instance copies a batch once",
    ),
    Flag(
        "host-policy",
        _G,
        host_setting,
        "Setting of a host policy: numa-node=<id>, or cpu-cores=<first>-<last>,... "
        "Policies are cpu, gpu_<id>, model, and those "
        "that instance groups name. Repeat it per setting.",
        path="host_policies",
        repeated=True,
        keyed=True,
        metavar="POLICY,SETTING=VALUE",
    ),
    Flag(
        "model-load-gpu-limit",
        _G,
        device_setting(number),
        (
            "Maximum fraction (0 to 1) of a GPU's memory in use after loading a model; "
            "the load fails above it. Repeat it per GPU."
        ),
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
        "Allow clients to register shared memory of the host or of GPUs for inputs and outputs.",
        path="allow_client_shm",
    ),
)

_G = "DEPRECATED"
DEPRECATED = (
    Flag(
        "strict-model-config",
        _G,
        boolean,
        "Deprecated name of --disable-auto-complete-config.",
        path="disable_auto_complete",
    ),
    Flag(
        "response-cache-byte-size",
        _G,
        integer,
        "Deprecated form of --cache-config local,size=.",
        path="cache.local.size",
    ),
    Flag(
        "trace-file",
        _G,
        plain,
        "Deprecated form of --trace-config triton,file=.",
        path="trace.modes.triton.file",
    ),
    Flag(
        "trace-level",
        _G,
        trace_level,
        "Deprecated form of --trace-config level=.",
        path="trace.level",
        repeated=True,
    ),
    Flag("trace-rate", _G, integer, "Deprecated form of --trace-config rate=.", path="trace.rate"),
    Flag(
        "trace-count", _G, integer, "Deprecated form of --trace-config count=.", path="trace.count"
    ),
    Flag(
        "trace-log-frequency",
        _G,
        integer,
        "Deprecated form of --trace-config triton,log-frequency=.",
        path="trace.modes.triton.log_frequency",
    ),
)

TRITON_FLAGS: tuple[Flag, ...] = (
    *SERVER,
    *LOGGING,
    *REPOSITORY,
    *HTTP,
    *GRPC,
    *OPENAI,
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
