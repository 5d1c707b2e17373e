from __future__ import annotations

import pytest

from tritonpy_http_api.generate.path import generate_target


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v2/models/m/generate", ("m", "", False)),
        ("/v2/models/m/generate_stream", ("m", "", True)),
        ("/v2/models/m/versions/12/generate", ("m", "12", False)),
        ("/v2/models/m/versions/12/generate_stream", ("m", "12", True)),
        ("/v2/models/generate_stream/generate", ("generate_stream", "", False)),
        ("/v2/models/a_stream/generate", ("a_stream", "", False)),
        ("/v2/models/m/infer", None),
        ("/v2/models/m/_stream", None),
        ("/v2/models/m/generate/", None),
        ("/v2/models/m/generate_streams", None),
        ("/v2/models/m/versions/x/generate", None),
        ("/v2/models/m/versions//generate_stream", None),
        ("/v2/models//generate", None),
        ("/v2/models/generate", None),
    ],
)
def test_which_paths_are_generate_calls(path, target):
    assert generate_target(path) == target
