from __future__ import annotations

import pytest

from tritonpy.config.qualified_names import called_model, namespace_of, qualified_name
from tritonpy_protos.model_config_pb2 import ModelEnsembling


@pytest.mark.parametrize(("namespace", "name", "key"), [("", "m", "m"), ("/a", "m", "/a::m"), ("", "a::m", "a::m")])
def test_a_qualified_name_combines_name_and_namespace(namespace, name, key):
    assert qualified_name(namespace, name) == key
    assert namespace_of(key, name) == namespace


def test_a_step_uses_the_model_of_its_namespace():
    assert called_model(ModelEnsembling.Step(model_name="m")) == "m"
    assert called_model(ModelEnsembling.Step(model_name="m", model_namespace="/a")) == "/a::m"
