from __future__ import annotations

import json

from tritonpy import Code
from tritonpy_http_api.errors import STATUS, error_body


def test_every_code_has_its_status():
    expected = {"INTERNAL": 500, "NOT_FOUND": 404, "UNAVAILABLE": 503, "UNSUPPORTED": 501}
    expected |= {
        "UNAUTHENTICATED": 401,
        "PERMISSION_DENIED": 403,
        "RESOURCE_EXHAUSTED": 429,
        "CONFLICT": 412,
    }
    assert {code: STATUS[code] for code in Code} == {
        code: expected.get(code.name, 400) for code in Code
    }


def test_a_body_is_compact_json():
    assert error_body('say "no"') == b'{"error":"say \\"no\\""}'


def test_unencodable_characters_are_replaced():
    assert json.loads(error_body("a\ud800b")) == {"error": "a?b"}
