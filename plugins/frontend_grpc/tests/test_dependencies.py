from __future__ import annotations

from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement


def allowed(distribution, version):
    found = [Requirement(text) for text in requires(distribution)]
    return all(each.specifier.contains(version) for each in found if each.name == "protobuf")


@pytest.mark.parametrize("version", ["6.33.6", "7.35.1", "8.0"])
def test_the_protobuf_requirement_is_compatible_with_tritonclient(version):
    assert allowed("tritonclient", version) or not allowed("tritonpy-frontend-grpc", version)
