from __future__ import annotations

import pytest

from tritonpy_http_api.infer_path import infer_target


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v2/models/m/infer", ("m", "")),
        ("/v2/models/m/versions/12/infer", ("m", "12")),
        ("/v2/models/a%20b/infer", ("a b", "")),
        ("/v2/models/infer/infer", ("infer", "")),
        ("/v2/models//infer", None),
        ("/v2/models/infer", None),
        ("/v2/models/m/versions/x/infer", None),
        ("/v2/models/m/versions//infer", None),
        ("/v2/models/m/versions/\u0663/infer", None),
        ("/v2/models/m/other/1/infer", None),
        ("/v2/models/a/b/versions/1/infer", None),
        ("/v2/models//versions/1/infer", None),
        ("/v2/models/m/infer/", None),
        ("/v3/models/m/infer", None),
    ],
)
def test_which_paths_are_calls(path, target):
    assert infer_target(path) == target
