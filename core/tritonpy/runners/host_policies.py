"""Host policies: the processor cores and NUMA nodes on which instances run."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonpy.api.contexts import InstanceContext
from tritonpy_config.problem import ConfigProblem
from tritonpy_config.server import InvalidServerConfig
from tritonpy_config.server.sections import HostPolicySettings, parse_cores
from tritonpy_ipc.host_binding import bind_thread

log = logging.getLogger("tritonpy.instance")
_UNBOUND: Mapping[str, HostPolicySettings] = {}
_DEFAULT = re.compile("cpu|model|gpu_[0-9]+")
_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """The cores of an instance's threads (empty: all of the server's) and its NUMA node."""

    cores: tuple[int, ...] = ()
    node: int | None = None

    def bind(self, instance: str) -> None:
        """Bind the calling thread and its future children; a failure is only logged."""
        trouble = bind_thread(self.cores, self.node)
        if trouble:
            log.warning("host policy of instance '%s': %s", instance, trouble)


class HostPolicies:
    """The host policies of the server by name.

    Raises `InvalidServerConfig` for cores and nodes that this machine does not have or that this
    process may not use.
    """

    def __init__(self, settings: Mapping[str, HostPolicySettings] = _UNBOUND) -> None:
        problems = [
            problem for name, policy in settings.items() for problem in _find_problems(name, policy)
        ]
        if problems:
            raise InvalidServerConfig(problems)
        self._policies = {
            name: HostPolicy(
                tuple(sorted(parse_cores(policy.cpu_cores))) if policy.cpu_cores else (),
                policy.numa_node,
            )
            for name, policy in settings.items()
        }

    def of(self, instance: InstanceContext) -> HostPolicy | None:
        """Return the host policy of `instance` and set its cores, or return None.

        Without a policy, the instance runs on all cores of the server, as in Triton. Logs a warning
        if the user chose an unknown name.
        """
        name = instance.host_policy
        policy = self._policies.get(name)
        if policy is not None:
            instance.cores = policy.cores
        elif name and not _DEFAULT.fullmatch(name):
            there = ", ".join(sorted(self._policies)) or "none"
            log.warning(
                "instance '%s' runs unbound: the server has no host policy '%s'; available: %s",
                instance.name,
                name,
                there,
            )
        return policy


def _find_problems(name: str, policy: HostPolicySettings) -> list[ConfigProblem]:
    problems = []
    here = os.sched_getaffinity(0)
    missing = parse_cores(policy.cpu_cores) - here if policy.cpu_cores else ()
    if missing:
        text = (
            f"this process may run on cores {ranges(here)}, which do not include {ranges(missing)}"
        )
        problems.append(ConfigProblem(f"host_policies.{name}.cpu_cores", text))
    nodes = _nodes()
    if policy.numa_node is not None and policy.numa_node not in nodes:
        text = (
            f"this machine has the NUMA nodes {ranges(nodes)}"
            if nodes
            else "this machine has no NUMA nodes"
        )
        problems.append(
            ConfigProblem(f"host_policies.{name}.numa_node", f"{text}; got {policy.numa_node}")
        )
    return problems


def _nodes() -> frozenset[int]:
    return frozenset(int(folder.name[4:]) for folder in _NODES.glob("node[0-9]*"))


def ranges(numbers: frozenset[int] | set[int]) -> str:
    """Return `numbers` in the syntax of the flag, such as `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
