"""The section `devices` of server.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from tritonpy_config.known_backends import MIN_COMPUTE_CAPABILITY
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server.expectation import ByteSize

PINNED_POOL = 1 << 28
CUDA_POOL = 1 << 26


Quantiles = Mapping[float, float]
"""Maps quantiles to their errors, both between 0 and 1."""

DEFAULT_QUANTILES = "0.5:0.05,0.9:0.01,0.95:0.001,0.99:0.001,0.999:0.001"


HOST = "cpu"
"""The name of the host's memory, including pinned memory.

The name of a GPU's memory is its number.
"""


DEFAULT_MODE = "triton"


class TraceConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests are traced and how.

    The values under `modes` are options of the mode's class.
    """

    mode: Annotated[
        str,
        Meta(
            min_length=1,
            description="triton: JSON files; opentelemetry: spans for a collector (trace-otel).",
        ),
    ] = DEFAULT_MODE
    level: Annotated[
        list[Literal["OFF", "TIMESTAMPS", "TENSORS"]],
        Meta(description="What to record; empty: nothing."),
    ] = []
    rate: Annotated[
        int, Meta(ge=0, le=2**32 - 1, description="Trace one request out of this many.")
    ] = 1000
    count: Annotated[
        int, Meta(ge=-1, le=2**31 - 1, description="Number of traces; -1: no limit.")
    ] = -1
    modes: Annotated[dict[str, dict[str, Any]], Meta(description="Options of each mode.")] = {}


class RateLimitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which instances may execute at the same time."""

    mode: Annotated[
        str,
        Meta(
            description=(
                "off: every idle instance may run; execution_count: an instance needs its "
                "resources; or the name of another plugin."
            )
        ),
    ] = "off"
    resources: Annotated[
        dict[str, Annotated[int, Meta(ge=0)]],
        Meta(
            description="Amount of NAME on every device, or of NAME:DEVICE on one; default: "
            "as much as the "
            "largest demand of an instance."
        ),
    ] = {}


def parse_resource(key: str) -> tuple[str, int | None]:
    """Return name and device (None: every device) of a key of `resources`.

    Raises ValueError for an invalid key.
    """
    name, colon, device = key.partition(":")
    if not name or (colon and not device.isdecimal()):
        raise ValueError(f"'{key}' is not <resource_name> or <resource_name>:<device>")
    return name, int(device) if colon else None


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The memory budget of models, and the models that are loaded on first request."""

    budget: Annotated[
        ByteSize,
        Meta(
            ge=0, description="Memory of all models together, on the host and on GPUs; 0: no limit."
        ),
    ] = 0
    devices: Annotated[
        dict[str, Annotated[ByteSize, Meta(gt=0)]],
        Meta(description="The same for one device: cpu, or the number of a GPU."),
    ] = {}
    lazy: Annotated[
        list[str],
        Meta(
            description=(
                "Models (patterns with * and ?) that load at their first request; "
                "a model's configuration overrides it."
            )
        ),
    ] = []
    pinned: Annotated[
        list[str],
        Meta(
            description="Models (patterns) that are never unloaded for others once they are loaded."
        ),
    ] = []
    first_request: Annotated[
        Literal["wait", "refuse"],
        Meta(
            description=(
                "wait: a request waits until its model is loaded; refuse: "
                "it fails at once with a retry time."
            )
        ),
    ] = "wait"
    wait_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds that a request waits for its model, and a lazy load for memory.",
        ),
    ] = 60
    retry_s: Annotated[
        float,
        Meta(
            gt=0,
            description=(
                "Seconds until a failed load is retried; doubled after each failure, "
                "up to a minute."
            ),
        ),
    ] = 1

    @property
    def limited(self) -> bool:
        """Whether the budget has any limit."""
        return bool(self.budget or self.devices)


def memory_problems(settings: MemorySettings) -> Iterator[ConfigProblem]:
    """Yield problems of the device names."""
    for device in settings.devices:
        if device != HOST and not device.isdecimal():
            yield ConfigProblem(
                f"memory.devices.{device}",
                f"expects '{HOST}' or the number of a GPU, got '{device}'",
            )


class LatencySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Distributions of the models' latencies for the metrics; switched off, they cost nothing."""

    histograms: Annotated[
        bool,
        Meta(
            description=(
                "Count the times to the first response in buckets; a model's model_metrics may "
                "set them."
            )
        ),
    ] = False
    summaries: Annotated[
        bool, Meta(description="Keep quantiles of the last minute's latencies.")
    ] = False
    quantiles: Annotated[
        str,
        Meta(description="Quantiles and their errors: <quantile>:<error>, separated by commas."),
    ] = DEFAULT_QUANTILES


_NUMBER = re.compile(r"\s*([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)")
_ERRORS = 0.0001, 0.999
"""Limits for the error in a lenient text: a smaller error would keep too many latencies."""

NO_LATENCIES = LatencySettings()


def parse_quantiles(text: str) -> Quantiles:
    """Return a mapping from each quantile to its allowed error, in the order of the text.

    Raises ValueError for an invalid list.
    """
    return dict(_pair(each) for each in text.split(","))


def _pair(text: str) -> tuple[float, float]:
    quantile, colon, error = text.partition(":")
    try:
        pair = float(quantile), float(error)
    except ValueError:
        pair = 0.0, 0.0
    if not colon or not all(0 < number < 1 for number in pair):
        raise ValueError(f"'{text}' is not <quantile>:<error>, two numbers between 0 and 1")
    return pair


def read_lenient_quantiles(text: str) -> tuple[str, list[str]]:
    """Return the quantiles that Triton would read from `text`, and warnings about the rest.

    The first result is valid for `parse_quantiles`. Triton uses the number at the start of a text,
    ignores items without one, and uses its default quantiles if no item is valid.
    """
    items: list[str] = []
    warnings: list[str] = []
    for item in filter(None, text.split(",")):
        try:
            parse_quantiles(item)
        except ValueError:
            found, warning = _lenient_item(item)
            items += found
            warnings.append(f"summary_quantiles: {warning}")
        else:
            items.append(item)
    if not items:
        warnings.append("summary_quantiles: no quantile is left, the default ones are used")
    return ",".join(items) or DEFAULT_QUANTILES, warnings


def _lenient_item(item: str) -> tuple[list[str], str]:
    """Return the item in the format of `parse_quantiles` if possible, and the warning about it."""
    before, colon, behind = item.partition(":")
    if not colon:
        return (
            [],
            (
                f"Invalid option: [{item}]. No ':' delimiter found. Expected format is "
                "<quantile>:<error>"
            ),
        )
    first, second = _NUMBER.match(before), _NUMBER.match(behind)
    if first is None or second is None:
        return [], f"Invalid option: [{item}]. Error: stod"
    quantile, error = float(first[1]), min(max(float(second[1]), _ERRORS[0]), _ERRORS[1])
    if not 0 < quantile < 1:
        return [], f"'{item}' is ignored: a quantile is between 0 and 1"
    return [f"{quantile}:{error}"], f"'{item}' is read as {quantile}:{error}"


class HostPolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cores and the NUMA node that the instances of a host policy use.

    An instance group names its policy. The default names are "cpu", "gpu_<id>" and "model".
    """

    cpu_cores: Annotated[
        str,
        Meta(
            description=(
                "Processor cores for threads and worker processes: <first>-<last>, "
                "separated by commas."
            )
        ),
    ] = ""
    numa_node: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="NUMA node whose memory they use.")
    ] = None


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores in ranges such as `0-3,8-11`; a single core is allowed, too.

    Raises ValueError with Triton's text.
    """
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(
                "host policy setting 'cpu-cores' format is "
                f"'<lower_cpu_core_id>-<upper_cpu_core_id>'. Got {part}"
            )
        cores.update(range(int(first), int(last if dash else first) + 1))
    if not cores:
        raise ValueError(f"host policy setting 'cpu-cores' names no core. Got {text}")
    return frozenset(cores)


class DeviceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The GPUs that are used, their limits, and the memory pools for inputs and outputs.

    Devices count from 0.
    """

    pinned_memory_pool_byte_size: Annotated[
        ByteSize,
        Meta(
            ge=0,
            description=(
                "Pinned host memory, which GPUs copy at full speed; allocated when a model first "
                "needs it."
            ),
        ),
    ] = PINNED_POOL
    cuda_memory_pool_byte_size: Annotated[
        dict[str, Annotated[ByteSize, Meta(ge=0)]],
        Meta(
            description="By GPU: bytes of its memory pool for inputs and outputs; default 64 MiB."
        ),
    ] = {}
    model_load_gpu_limit: Annotated[
        dict[str, float],
        Meta(
            description=(
                "By GPU: fraction of its memory that all processes may use after a model is "
                "loaded; more fails the load."
            )
        ),
    ] = {}
    min_supported_compute_capability: Annotated[
        float, Meta(ge=0, description="Minimum CUDA compute capability: other GPUs are not used.")
    ] = MIN_COMPUTE_CAPABILITY

    def cuda_pool(self, gpu: int) -> int:
        """Return the size of a GPU's pool in bytes."""
        return self.cuda_memory_pool_byte_size.get(str(gpu), CUDA_POOL)

    def gpu_limits(self) -> dict[int, float]:
        """Return the limits of GPUs as fractions from 0 to 1."""
        return {int(gpu): part for gpu, part in self.model_load_gpu_limit.items()}


def device_problems(settings: DeviceSettings) -> Iterator[ConfigProblem]:
    """Yield problems of the devices and limits, with Triton's texts."""
    for section in ("cuda_memory_pool_byte_size", "model_load_gpu_limit"):
        given: Mapping[str, float] = getattr(settings, section)
        for device in given:
            if not device.isdecimal():
                yield ConfigProblem(
                    f"devices.{section}.{device}", f"expects device ID >= 0, got {device}"
                )
    for device, part in settings.model_load_gpu_limit.items():
        if not 0 <= part <= 1:
            text = f"expects limit fraction to be in range [0.0, 1.0], got {part:f}"
            yield ConfigProblem(f"devices.model_load_gpu_limit.{device}", text)
