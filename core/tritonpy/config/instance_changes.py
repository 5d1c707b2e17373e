"""The fields of a configuration that can change while a model serves: instances and versions."""

from __future__ import annotations

from tritonpy_protos.model_config_pb2 import ModelConfig

_CHANGEABLE = ("instance_group", "version_policy")


def without_instances(config: ModelConfig) -> ModelConfig:
    """Return a copy of `config` without its instance groups and version policy."""
    rest = ModelConfig()
    rest.CopyFrom(config)
    for field in _CHANGEABLE:
        rest.ClearField(field)
    return rest


def with_instances_of(config: ModelConfig, other: ModelConfig) -> ModelConfig:
    """Return a copy of `config` with the instance groups and version policy of `other`."""
    result = without_instances(config)
    result.instance_group.extend(other.instance_group)
    if other.HasField("version_policy"):
        result.version_policy.CopyFrom(other.version_policy)
    return result
