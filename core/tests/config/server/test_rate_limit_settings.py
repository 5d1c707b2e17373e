from __future__ import annotations

import pytest

from tritonpy.config.server.rate_limit_settings import parse_resource


@pytest.mark.parametrize(("key", "found"), [("R1", ("R1", None)), ("R1:0", ("R1", 0)), ("a.b:12", ("a.b", 12))])
def test_a_key_names_a_resource_and_optionally_a_device(key, found):
    assert parse_resource(key) == found


@pytest.mark.parametrize("key", ["", ":1", "R1:", "R1:x", "R1:1:2", "R1:-1"])
def test_a_key_without_a_resource_is_refused(key):
    with pytest.raises(ValueError, match="<resource_name>"):
        parse_resource(key)
