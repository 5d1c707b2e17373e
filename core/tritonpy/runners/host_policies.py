"""Where on the host instances run: the policies of the server, and what this machine can do of them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonpy.api.backend import InstanceContext
from tritonpy.config.problem import ConfigProblem
from tritonpy.config.server import InvalidServerConfig
from tritonpy.config.server.host_policy import HostPolicySettings, parse_cores
from tritonpy.ipc.host_binding import bind_thread

log = logging.getLogger("tritonpy.instance")
_UNBOUND: Mapping[str, HostPolicySettings] = {}
_DEFAULT = re.compile("cpu|model|gpu_[0-9]+")
_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """`cores` are those that threads are bound to, none: wherever the server runs; `node` is whose memory they use."""

    cores: tuple[int, ...] = ()
    node: int | None = None

    def bind(self, instance: str) -> None:
        """Bind the calling thread, and what it starts. What cannot be bound is logged: `instance` runs all the same."""
        trouble = bind_thread(self.cores, self.node)
        if trouble:
            log.warning("host policy of instance '%s': %s", instance, trouble)


class HostPolicies:
    """By their names. Raises InvalidServerConfig for cores and nodes that this machine does not have, or keeps from this process."""

    def __init__(self, settings: Mapping[str, HostPolicySettings] = _UNBOUND) -> None:
        problems = [problem for name, policy in settings.items() for problem in _impossible(name, policy)]
        if problems:
            raise InvalidServerConfig(problems)
        self._policies = {
            name: HostPolicy(tuple(sorted(parse_cores(policy.cpu_cores))) if policy.cpu_cores else (), policy.numa_node)
            for name, policy in settings.items()
        }

    def of(self, instance: InstanceContext) -> HostPolicy | None:
        """Return the policy that `instance` follows, and note its cores there; None: it runs wherever the server does, as in Triton for a name
        that the server does not know. One that somebody chose is then warned of."""
        name = instance.host_policy
        policy = self._policies.get(name)
        if policy is not None:
            instance.cores = policy.cores
        elif name and not _DEFAULT.fullmatch(name):
            there = ", ".join(sorted(self._policies)) or "none"
            log.warning(
                "instance '%s' runs unbound: the server has no host policy '%s', there are: %s",
                instance.name,
                name,
                there,
            )
        return policy


def _impossible(name: str, policy: HostPolicySettings) -> list[ConfigProblem]:
    problems = []
    here = os.sched_getaffinity(0)
    missing = parse_cores(policy.cpu_cores) - here if policy.cpu_cores else ()
    if missing:
        text = f"this process may run on the cores {ranges(here)}; {ranges(missing)} is not among them"
        problems.append(ConfigProblem(f"host_policies.{name}.cpu_cores", text))
    nodes = _nodes()
    if policy.numa_node is not None and policy.numa_node not in nodes:
        text = f"this machine has the NUMA nodes {ranges(nodes)}" if nodes else "this machine shows no NUMA nodes"
        problems.append(ConfigProblem(f"host_policies.{name}.numa_node", f"{text}; got {policy.numa_node}"))
    return problems


def _nodes() -> frozenset[int]:
    return frozenset(int(folder.name[4:]) for folder in _NODES.glob("node[0-9]*"))


def ranges(numbers: frozenset[int] | set[int]) -> str:
    """Return `numbers` as the flag takes them: `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
