from __future__ import annotations

from tritonpy.auth import Verb
from tritonpy.frontend import Operation
from tritonpy_http_api.operation_paths import verbs_by_path


def test_a_path_has_the_verbs_of_all_of_its_methods():
    one = Operation("a", "GET", "toys/{box}", "Tell.", Verb.READ)
    other = Operation("b", "PUT", "toys/{box}", "Say.", Verb.ADMIN)
    third = Operation("c", "POST", "toys/{box}/open", "Open.", Verb.MANAGE)
    (boxes, verbs), (opened, opening) = verbs_by_path([one, other, third])
    assert verbs == {"GET": Verb.READ, "PUT": Verb.ADMIN}
    assert opening == {"POST": Verb.MANAGE}
    assert boxes.fullmatch("/v2/toys/größe")
    assert opened.fullmatch("/v2/toys/a/open")
    for path in ("/v2/toys", "/v2/toys/", "/v2/toys/a/b", "/toys/a"):
        assert boxes.fullmatch(path) is None
