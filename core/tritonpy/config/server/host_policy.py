"""The section `host_policies` of server.yaml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class HostPolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where on the host the instances of a policy run; an instance group names its policy, or has "cpu", "gpu_<id>" or "model"."""

    cpu_cores: Annotated[
        str, Meta(description="Processor cores for threads and worker processes: <first>-<last>, with commas between.")
    ] = ""
    numa_node: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="Node whose memory they use.")] = None


def parse_cores(text: str) -> frozenset[int]:
    """Return the cores that ranges such as `0-3,8-11` name; a single core may stand for itself. Raises ValueError in Triton's words."""
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
