"""The section `host_policies` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class HostPolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The cores and the NUMA node that the instances of a host policy use.

    An instance group names its policy. The default names are "cpu", "gpu_<id>" and "model".
    """

    cpu_cores: Annotated[
        str, Meta(description="Processor cores for threads and worker processes: <first>-<last>, separated by commas.")
    ] = ""
    numa_node: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="NUMA node whose memory they use.")] = None


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores in ranges such as `0-3,8-11`; a single core is allowed, too.

    Raises ValueError with Triton's text.
    """
    cores: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(
                f"host policy setting 'cpu-cores' format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got {part}"
            )
        cores.update(range(int(first), int(last if dash else first) + 1))
    if not cores:
        raise ValueError(f"host policy setting 'cpu-cores' names no core. Got {text}")
    return frozenset(cores)
