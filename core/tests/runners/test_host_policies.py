from __future__ import annotations

import os

import pytest

from tritonpy.api.contexts import InstanceContext
from tritonpy.runners import host_policies
from tritonpy.runners.host_policies import HostPolicies, HostPolicy, ranges
from tritonpy_config.server import InvalidServerConfig
from tritonpy_config.server.sections import HostPolicySettings

HERE = os.sched_getaffinity(0)


@pytest.fixture(autouse=True)
def _machine(monkeypatch, tmp_path):
    """A machine with cores 0 to 3 and two NUMA nodes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3})
    for node in (0, 1):
        (tmp_path / f"node{node}").mkdir()
    monkeypatch.setattr(host_policies, "_NODES", tmp_path)


def instance(policy):
    return InstanceContext("m_0", "CPU", 0, 0, host_policy=policy)


def test_an_instance_follows_the_policy_of_its_name():
    policies = HostPolicies(
        {"cpu": HostPolicySettings("0-1,3", 1), "gpu_0": HostPolicySettings(numa_node=0)}
    )
    context = instance("cpu")
    assert policies.of(context) == HostPolicy((0, 1, 3), 1)
    assert context.cores == (0, 1, 3)
    assert policies.of(instance("gpu_0")) == HostPolicy((), 0)


def test_an_unknown_policy_binds_no_instance():
    context = instance("nobody")
    assert HostPolicies({}).of(context) is None
    assert context.cores == ()


def test_a_missing_explicit_policy_is_logged_as_a_warning(caplog):
    policies = HostPolicies({"pin": HostPolicySettings("0")})
    assert [policies.of(instance(name)) for name in ("cpu", "model", "gpu_0", "")] == [None] * 4
    assert caplog.messages == []
    policies.of(instance("pinn"))
    assert caplog.messages == [
        "instance 'm_0' runs unbound: the server has no host policy 'pinn'; available: pin"
    ]


def test_unavailable_cores_and_nodes_are_refused_with_the_available_ones():
    settings = {"a": HostPolicySettings("2-5"), "b": HostPolicySettings("0-1", 2)}
    with pytest.raises(InvalidServerConfig) as refused:
        HostPolicies(settings)
    assert [(problem.path, problem.text) for problem in refused.value.problems] == [
        (
            "host_policies.a.cpu_cores",
            "this process may run on cores 0-3, which do not include 4-5",
        ),
        ("host_policies.b.numa_node", "this machine has the NUMA nodes 0-1; got 2"),
    ]


def test_a_machine_without_numa_nodes_is_reported(monkeypatch, tmp_path):
    monkeypatch.setattr(host_policies, "_NODES", tmp_path / "nothing")
    with pytest.raises(InvalidServerConfig, match="has no NUMA nodes; got 0"):
        HostPolicies({"a": HostPolicySettings(numa_node=0)})


def test_a_failed_binding_is_a_warning(monkeypatch, caplog):
    monkeypatch.setattr(
        host_policies, "bind_thread", lambda *_: "Unable to set NUMA memory policy: not here"
    )
    HostPolicy((), 0).bind("m_0_0")
    assert caplog.messages == [
        "host policy of instance 'm_0_0': Unable to set NUMA memory policy: not here"
    ]


@pytest.mark.parametrize(
    ("numbers", "text"), [({0}, "0"), ({0, 1, 2}, "0-2"), ({5, 0, 1, 3}, "0-1,3,5"), (set(), "")]
)
def test_cores_are_printed_in_the_syntax_of_the_flag(numbers, text):
    assert ranges(numbers) == text
