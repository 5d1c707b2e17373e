"""Complete servers with models in clouds.

Tests cover loading, polling, load requests, several repositories and unreachable stores.
"""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from tritonpy import Backend, StartupError, hookimpl
from tritonpy_repo_cloud.store import ObjectStore
from tritonpy_testing import InferenceServerException, InferInput, InProcessClient, running_server

from .stores.proxy import Fault, is_data

CONFIG = (
    b'backend: "reader" input { name: "IN" data_type: TYPE_INT32 dims: 1 } '
    b'output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
)
WAIT_S = 60


class Reader(Backend):
    """Returns the content of the file `value` of its version."""

    def __init__(self, model, instance):
        super().__init__(model, instance)
        self.value = (model.path / "value").read_bytes()

    def infer(self, inputs):
        return {"OUT": np.array([self.value], object)}


class Readers:
    @hookimpl
    def tritonpy_backends(self):
        return {"reader": Reader}


def model(value, version=1):
    return {"config.pbtxt": CONFIG, f"{version}/value": value}


def serving(*repositories, mode="none", load=(), **more):
    frontends = {"http": False, "grpc": False, "metrics": False}
    control = {
        "mode": mode,
        "interval_s": 0.05,
        **({"load": list(load)} if mode == "explicit" else {}),
    }
    config = {
        "repositories": list(repositories),
        "frontends": frontends,
        "control": control,
        **more,
    }
    return running_server(config, [Readers()])


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))


def at(place, port=0, **options):
    return {"url": place.url(port), "options": place.options(port, **options)}


def answer(server, name):
    data = InferInput("IN", [1], "INT32").set_data_from_numpy(np.zeros(1, np.int32))
    return InProcessClient(server).infer(name, [data]).as_numpy("OUT")[0]


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "never so"
        time.sleep(0.01)


def test_models_are_served_from_every_store(place):
    place.fill({"a": model(b"of a"), "b": {**model(b"one"), **model(b"two", 2)}})
    with serving(at(place)) as server:
        assert (answer(server, "a"), answer(server, "b")) == (b"of a", b"two")


def test_a_poll_follows_the_store(place):
    place.fill({"a": model(b"first"), "gone": model(b"x")})
    with serving(at(place), mode="poll") as server:
        client = InProcessClient(server)
        assert answer(server, "a") == b"first"
        place.put("a/1/value", b"second")
        place.put("new/1/value", b"new")
        place.put("new/config.pbtxt", CONFIG)
        place.delete("gone/1/value")
        place.delete("gone/config.pbtxt")
        until(lambda: answer(server, "a") == b"second")
        until(lambda: client.is_model_ready("new"))
        until(lambda: not client.is_model_ready("gone"))
        assert answer(server, "new") == b"new"


def test_a_request_loads_what_is_there_now(place):
    place.fill({"a": model(b"first"), "b": model(b"b")})
    with serving(at(place), mode="explicit", load=["a"]) as server:
        client = InProcessClient(server)
        assert answer(server, "a") == b"first"
        assert not client.is_model_ready("b")
        assert sorted(each["name"] for each in client.get_model_repository_index()) == ["a", "b"]
        place.put("a/1/value", b"second")
        client.load_model("a")
        client.load_model("b")
        assert (answer(server, "a"), answer(server, "b")) == (b"second", b"b")
        client.unload_model("a")
        until(lambda: not client.is_model_ready("a"))
        with pytest.raises(
            InferenceServerException,
            match="failed to load 'unknown', failed to poll from model repository",
        ):
            client.load_model("unknown")


def test_clouds_and_local_folders_are_served_together(place_in, model_repository):
    model_repository.add("local", CONFIG.decode(), {1: {"value": b"on this disk"}})
    places = {name: place_in(name) for name in ("moto", "gcs", "azurite")}
    for name, place in places.items():
        place.fill({name: model(name.encode())})
    with serving(
        {"url": str(model_repository.path)}, *map(at, places.values()), mode="poll"
    ) as server:
        assert [answer(server, name) for name in ("local", *places)] == [
            b"on this disk",
            *map(str.encode, places),
        ]


def test_namespaces_distinguish_equal_names_in_two_stores(place_in):
    places = [place_in("moto"), place_in("gcs")]
    for place in places:
        place.fill({"m": model(place.server.scheme.encode())})
    with serving(*map(at, places), model_namespacing=True) as server:
        assert [answer(server, f"{place.url()}::m") for place in places] == [b"s3", b"gs"]


def test_a_local_folder_is_polled_while_a_cloud_is_unreachable(place_in, proxied, model_repository):
    place = place_in("moto")
    place.fill({"far": model(b"far")})
    model_repository.add("near", CONFIG.decode(), {1: {"value": b"before"}})
    proxy = proxied(place)
    near = {"url": str(model_repository.path)}
    with serving(at(place, proxy.port, attempts=1), near, mode="poll") as server:
        proxy.rule = lambda request: Fault(status=500)
        seen = len(proxy.requests)
        until(lambda: len(proxy.requests) > seen)
        model_repository.add("near", versions={1: {"value": b"after it"}})
        until(lambda: answer(server, "near") == b"after it")
        assert answer(server, "far") == b"far"


def test_a_reload_that_fails_halfway_leaves_the_old_version(place_in, proxied):
    place = place_in("moto")
    place.fill({"a": model(b"first")})
    proxy = proxied(place)
    with serving(at(place, proxy.port, attempts=1), mode="explicit", load=["a"]) as server:
        client = InProcessClient(server)
        place.put("a/1/value", b"second")
        proxy.rule = lambda request: Fault(cut_after=2) if is_data(request) else None
        with pytest.raises(
            InferenceServerException,
            match=r"failed to load 'a', failed to poll .* cannot be read \(a/1/value\)",
        ):
            client.load_model("a")
        assert answer(server, "a") == b"first"
        proxy.rule = lambda request: None
        client.load_model("a")
        assert answer(server, "a") == b"second"


def test_a_later_poll_loads_a_model_that_could_not_be_fetched(place_in, proxied, caplog):
    place = place_in("moto")
    place.fill({"a": model(b"first")})
    proxy = proxied(place)
    with serving(at(place, proxy.port, attempts=1), mode="poll") as server:
        proxy.rule = lambda request: Fault(status=500) if is_data(request) else None
        place.put("a/1/value", b"second")
        until(lambda: "Poll failed for model directory 'a'" in caplog.text)
        assert answer(server, "a") == b"first"
        proxy.rule = lambda request: None
        until(lambda: answer(server, "a") == b"second")


def test_a_model_that_changes_while_it_loads_is_loaded_as_it_is_then(place_in, proxied):
    place = place_in("moto")
    place.fill({"a": model(b"first")})
    proxy = proxied(place)
    changed = threading.Event()

    def change(request):
        if is_data(request) and not changed.is_set():
            changed.set()
            place.put("a/1/value", b"second")

    proxy.rule = change
    with serving(at(place, proxy.port, completion_timeout_s=30)) as server:
        assert answer(server, "a") == b"second"
    assert changed.is_set()


def test_without_the_store_a_server_starts_from_the_cache_and_logs_its_age(
    place_in, proxied, caplog
):
    place = place_in("moto")
    place.fill({"a": model(b"kept"), "b": model(b"also kept")})
    proxy = proxied(place)
    with serving(at(place, proxy.port)):
        pass
    proxy.rule = lambda request: Fault(status=503)
    with serving(at(place, proxy.port, attempts=1), mode="explicit", load=["*"]) as server:
        assert (answer(server, "a"), answer(server, "b")) == (b"kept", b"also kept")
        InProcessClient(server).load_model("a")
    assert "it cannot be reached" in caplog.text
    assert "using 2 models from the cache, as they were 0 min " in caplog.text


def test_without_the_store_and_without_a_cache_a_server_does_not_start(place_in, proxied):
    place = place_in("moto")
    proxy = proxied(place)
    proxy.rule = lambda request: Fault(status=503)
    with (
        pytest.raises(StartupError, match="cannot be listed: it cannot be reached"),
        serving(at(place, proxy.port, attempts=1)),
    ):
        pass


def test_denied_access_prevents_a_start_from_the_cache(place_in, monkeypatch):
    place = place_in("s3rver")
    place.fill({"a": model(b"kept")})
    with serving(at(place)):
        pass
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "REVOKED")
    with pytest.raises(StartupError, match="access is denied"), serving(at(place)):
        pass


def test_a_recovered_store_is_polled_again(place_in, proxied, caplog):
    place = place_in("moto")
    place.fill({"a": model(b"first")})
    proxy = proxied(place)
    with serving(at(place, proxy.port, attempts=1, longest_pause_s=0.05), mode="poll") as server:
        proxy.rule = lambda request: Fault(status=500)
        until(lambda: "loaded models continue to serve" in caplog.text)
        place.put("a/1/value", b"second")
        proxy.rule = lambda request: None
        until(lambda: answer(server, "a") == b"second")


def test_an_unreachable_store_is_polled_less_often(place_in, proxied):
    place = place_in("moto")
    place.fill({"a": model(b"first")})
    proxy = proxied(place)
    repository = place.repository(proxy.port, attempts=1)
    known = repository.scan()
    proxy.rule = lambda request: Fault(status=500)
    assert repository.scan() == known
    requested = len(proxy.requests)
    assert [repository.scan() for _ in range(100)] == [known] * 100
    assert list(repository.names()) == ["a"]
    assert len(proxy.requests) == requested
    repository.close()


def test_two_servers_start_at_once_and_fetch_each_file_once(place_in, proxied):
    place = place_in("moto")
    place.fill({name: model(name.encode()) for name in ("a", "b", "c")})
    proxy = proxied(place)
    started = threading.Barrier(2)
    answers = []

    def serve():
        started.wait(30)
        with serving(at(place, proxy.port)) as server:
            answers.append([answer(server, name) for name in ("a", "b", "c")])

    threads = [threading.Thread(target=serve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert answers == [[b"a", b"b", b"c"]] * 2
    assert len([each for each in proxy.data_requests() if each.path.endswith("value")]) == 3


def test_unloaded_models_leave_nothing_but_the_cache(place_in, tmp_path):
    place = place_in("moto")
    place.fill({"a": model(b"x")})
    with serving(at(place), mode="explicit", load=["a"]) as server:
        leases = tmp_path / "user" / "tritonpy" / "repositories" / "leases"
        assert len(list(leases.glob("*/*/a"))) == 1
        InProcessClient(server).unload_model("a")
        until(lambda: not list(leases.glob("*/*/a")))
    assert list(leases.iterdir()) == []


def test_only_the_configuration_of_a_lazy_model_is_fetched_before_its_first_request(
    place_in, monkeypatch
):
    place = place_in("moto")
    place.fill({"a": model(b"of a"), "b": model(b"of b")})
    fetched = []
    read = ObjectStore.read
    monkeypatch.setattr(
        ObjectStore,
        "read",
        lambda self, file, start, end: (fetched.append(file.path), read(self, file, start, end))[1],
    )
    with serving(at(place), memory={"lazy": ["*"], "budget": "1GiB"}) as server:
        assert [tensor.name for tensor in server.engine.model_metadata("a").inputs] == ["IN"]
        assert set(fetched) == {"a/config.pbtxt", "b/config.pbtxt"}
        assert answer(server, "a") == b"of a"
        assert {path for path in fetched if path.endswith("value")} == {"a/1/value"}


def test_lazy_models_are_loaded_from_the_cache_while_the_store_is_unreachable(place_in, proxied):
    place = place_in("moto")
    place.fill({"a": model(b"of a")})
    proxy = proxied(place)
    with serving(at(place, proxy.port, attempts=1)) as server:
        assert answer(server, "a") == b"of a"
    proxy.rule = lambda request: Fault(status=500)
    with serving(at(place, proxy.port, attempts=1), memory={"lazy": ["*"]}) as server:
        assert server.engine.repository_index()[0].state == "UNAVAILABLE"
        assert answer(server, "a") == b"of a"
