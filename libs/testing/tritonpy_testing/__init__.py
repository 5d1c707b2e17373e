"""Helpers for tests of plugins: contract tests, toy engine, harnesses, client and server.

A complete test of a plugin, whose module `my_plugin` registers the backend `Doubler` as "doubler":

    import my_plugin
    import numpy as np
    from tritonpy_testing import BackendContract, InferInput, InProcessClient, running_server

    CONFIG = '''
        backend: "doubler" max_batch_size: 8
        input { name: "IN" data_type: TYPE_FP32 dims: 4 }
        output { name: "OUT" data_type: TYPE_FP32 dims: 4 }
    '''

    class TestDoubler(BackendContract):
        plugin_class = my_plugin.Doubler
        plugin = my_plugin
        name = "doubler"
        config = CONFIG

    def test_it_doubles(model_repository):  # a fixture of the installed package
        model_repository.add("twice", config=CONFIG)
        no_ports = {"http": False, "grpc": False, "metrics": False}
        server_yaml = {"repositories": [{"url": str(model_repository.path)}], "frontends": no_ports}
        with running_server(server_yaml) as server:
            data = InferInput("IN", [1, 4], "FP32").set_data_from_numpy(np.ones((1, 4), np.float32))
            result = InProcessClient(server).infer("twice", [data])
            assert (result.as_numpy("OUT") == 2).all()

Each kind of plugin has one contract; its docstring lists the attributes that a test sets. pytest
collects only classes derived from a contract, not the contract itself.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tritonpy_testing.backend_harness import BackendHarness
    from tritonpy_testing.client.exception import InferenceServerException
    from tritonpy_testing.client.in_process_client import InProcessClient
    from tritonpy_testing.client.infer_input import InferInput
    from tritonpy_testing.client.infer_result import InferResult
    from tritonpy_testing.client.requested_output import InferRequestedOutput
    from tritonpy_testing.contracts.authenticator import AuthenticatorContract
    from tritonpy_testing.contracts.backend import BackendContract
    from tritonpy_testing.contracts.batch_policy import BatchPolicyContract
    from tritonpy_testing.contracts.cache import CacheContract
    from tritonpy_testing.contracts.command import CommandContract
    from tritonpy_testing.contracts.device import DeviceContract
    from tritonpy_testing.contracts.doctor_check import DoctorCheckContract
    from tritonpy_testing.contracts.engine import EngineContract
    from tritonpy_testing.contracts.frontend import FrontendContract
    from tritonpy_testing.contracts.frontend_host import FrontendHostContract
    from tritonpy_testing.contracts.lint_rule import LintRuleContract
    from tritonpy_testing.contracts.observer import ObserverContract
    from tritonpy_testing.contracts.operations import OperationGroupContract
    from tritonpy_testing.contracts.rate_limiter import RateLimiterContract
    from tritonpy_testing.contracts.repo_agent import RepoAgentContract
    from tritonpy_testing.contracts.repository import RepositoryContract
    from tritonpy_testing.contracts.residency import ResidencyPolicyContract
    from tritonpy_testing.contracts.router import RouterContract
    from tritonpy_testing.contracts.runner import RunnerFactoryContract
    from tritonpy_testing.contracts.scheduler import SchedulerContract
    from tritonpy_testing.contracts.sharing import SharingContract
    from tritonpy_testing.contracts.trace_sink import TraceSinkContract
    from tritonpy_testing.contracts.transport import TransportContract
    from tritonpy_testing.in_process_server import RunningServer, running_server
    from tritonpy_testing.model_repository import ModelRepository
    from tritonpy_testing.parse import model_config
    from tritonpy_testing.ports import free_port
    from tritonpy_testing.posix_memory import SharedObject, shared_object
    from tritonpy_testing.recording_sink import RecordingSink
    from tritonpy_testing.sample_inputs import random_inputs
    from tritonpy_testing.scheduler_harness import SchedulerHarness
    from tritonpy_testing.slow_client import SlowClient
    from tritonpy_testing.toy_engine import ToyEngine
    from tritonpy_testing.toy_model import ToyModel, toy_models

# pytest loads this package in every test run, so each module is imported at its first use.
_MODULES = {
    "AuthenticatorContract": "contracts.authenticator",
    "BackendContract": "contracts.backend",
    "BackendHarness": "backend_harness",
    "BatchPolicyContract": "contracts.batch_policy",
    "CacheContract": "contracts.cache",
    "CommandContract": "contracts.command",
    "DeviceContract": "contracts.device",
    "DoctorCheckContract": "contracts.doctor_check",
    "EngineContract": "contracts.engine",
    "FrontendContract": "contracts.frontend",
    "FrontendHostContract": "contracts.frontend_host",
    "InProcessClient": "client.in_process_client",
    "InferInput": "client.infer_input",
    "InferRequestedOutput": "client.requested_output",
    "InferResult": "client.infer_result",
    "InferenceServerException": "client.exception",
    "LintRuleContract": "contracts.lint_rule",
    "ModelRepository": "model_repository",
    "ObserverContract": "contracts.observer",
    "OperationGroupContract": "contracts.operations",
    "RateLimiterContract": "contracts.rate_limiter",
    "RepoAgentContract": "contracts.repo_agent",
    "RepositoryContract": "contracts.repository",
    "ResidencyPolicyContract": "contracts.residency",
    "RouterContract": "contracts.router",
    "RunnerFactoryContract": "contracts.runner",
    "RunningServer": "in_process_server",
    "SchedulerContract": "contracts.scheduler",
    "SharingContract": "contracts.sharing",
    "SchedulerHarness": "scheduler_harness",
    "SharedObject": "posix_memory",
    "SlowClient": "slow_client",
    "ToyEngine": "toy_engine",
    "ToyModel": "toy_model",
    "TraceSinkContract": "contracts.trace_sink",
    "TransportContract": "contracts.transport",
    "RecordingSink": "recording_sink",
    "free_port": "ports",
    "model_config": "parse",
    "random_inputs": "sample_inputs",
    "running_server": "in_process_server",
    "shared_object": "posix_memory",
    "toy_models": "toy_model",
}


_RENAMED = {"Witness": "RecordingSink"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        old, name = name, _RENAMED[name]
        warnings.warn(
            f"{__name__}.{old} is now called {__name__}.{name}", DeprecationWarning, stacklevel=2
        )
    if name not in _MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "AuthenticatorContract",
    "BackendContract",
    "BackendHarness",
    "BatchPolicyContract",
    "CacheContract",
    "CommandContract",
    "DeviceContract",
    "DoctorCheckContract",
    "EngineContract",
    "FrontendContract",
    "FrontendHostContract",
    "InProcessClient",
    "InferInput",
    "InferRequestedOutput",
    "InferResult",
    "InferenceServerException",
    "LintRuleContract",
    "ModelRepository",
    "ObserverContract",
    "OperationGroupContract",
    "RateLimiterContract",
    "RecordingSink",
    "RepoAgentContract",
    "RepositoryContract",
    "ResidencyPolicyContract",
    "RouterContract",
    "RunnerFactoryContract",
    "RunningServer",
    "SchedulerContract",
    "SchedulerHarness",
    "SharedObject",
    "SharingContract",
    "SlowClient",
    "ToyEngine",
    "ToyModel",
    "TraceSinkContract",
    "TransportContract",
    "free_port",
    "model_config",
    "random_inputs",
    "running_server",
    "shared_object",
    "toy_models",
]
