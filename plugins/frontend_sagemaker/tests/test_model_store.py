from __future__ import annotations

import threading

import pytest

from .conftest import ENSEMBLE, adder_config, infer_body


@pytest.fixture
def client(serve):
    return serve().client


def load(client, name, url, **headers):
    return client.post("/models", json={"model_name": name, "url": url}, headers=headers)


def outputs(response):
    assert response.status_code == 200, response.text
    return response.json()["outputs"][0]["data"]


def test_a_model_is_loaded_listed_invoked_and_unloaded(client, archives):
    url = archives.add("abc", adder=adder_config("another_name"))
    assert load(client, "abc", url).status_code == 200
    described = {"modelName": "abc", "modelUrl": url}
    assert client.get("/models").json() == {"models": [described]}
    assert client.get("/models/abc").json() == described
    response = client.post("/models/abc/invoke", json=infer_body(1, 2))
    assert (outputs(response), response.json()["model_name"]) == ([2, 3], "abc")
    assert client.delete("/models/abc").status_code == 200
    assert client.get("/models").json() == {"models": []}
    assert client.post("/models/abc/invoke", json=infer_body(1, 2)).status_code == 404
    assert load(client, "abc", url).status_code == 200  # the path is free again


def test_the_configuration_may_be_at_the_top_of_the_archive(client, archives):
    url = archives.add_flat("abc", adder_config("customer"))
    assert load(client, "abc", url).status_code == 200
    assert client.get("/models/abc").json()["modelUrl"] == url.removesuffix("/model")
    assert outputs(client.post("/models/abc/invoke", json=infer_body(1, 2))) == [2, 3]


def test_archives_with_members_of_the_same_names_do_not_disturb_each_other(client, archives):
    models = {"first": adder_config(), "second": adder_config(), "both": ENSEMBLE}
    for name in ("one", "two"):
        assert load(client, name, archives.add(name, **models)).status_code == 200
    assert outputs(client.post("/models/one/invoke", json=infer_body(1, 2))) == [3, 4]
    assert client.delete("/models/one").status_code == 200
    assert outputs(client.post("/models/two/invoke", json=infer_body(1, 2))) == [3, 4]
    assert client.delete("/models/two").status_code == 200


@pytest.mark.parametrize(
    ("given", "served"), [("adder.tar.gz", "adder.tar.gz"), ("shop/adder.tar.gz", "abc")]
)
def test_the_target_model_of_the_header_names_the_model_in_the_server_unless_it_is_a_path(
    client, archives, given, served
):
    target = {"X-Amzn-SageMaker-Target-Model": given}
    url = archives.add("abc", adder=adder_config())
    assert load(client, "abc", url, **target).status_code == 200
    response = client.post("/models/abc/invoke", json=infer_body(1, 2), headers=target)
    assert (outputs(response), response.json()["model_name"]) == ([2, 3], served)
    assert client.get("/models").json()["models"][0]["modelName"] == "abc"
    assert client.delete("/models/abc", headers=target).status_code == 200


def test_a_loaded_model_gets_409(client, archives):
    url = archives.add("abc", adder=adder_config())
    assert load(client, "abc", url).status_code == 200
    assert load(client, "abc", url).status_code == 409
    other = load(client, "other", url)
    assert other.status_code == 409
    assert other.json() == {"error": f"model repository '{url}' has already been registered"}


def test_of_two_simultaneous_loads_one_wins(client, archives):
    url = archives.add("abc", adder=adder_config())
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.append(load(client, "abc", url).status_code))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 5


@pytest.mark.parametrize(
    ("error", "status"),
    [("load: the file is broken", 400), ("load: failed to allocate memory", 507)],
)
def test_a_failed_load_frees_the_path_and_a_lack_of_memory_gets_507(
    client, archives, error, status
):
    url = archives.add("abc", adder=adder_config(error=error))
    for _ in range(2):
        response = load(client, "abc", url)
        assert response.status_code == status
        assert error.removeprefix("load: ") in response.json()["error"]
    assert client.get("/models").json() == {"models": []}


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("/dev/shm/model", "must not be below /dev, /proc or /sys"),
        ("{folder}/abc/../../../../../../../../proc/self/model", "must not be below /dev"),
        ("/etc/model", "expected a path of the form {folder}/<hash>/model[/<subdir>]"),
        ("{folder}/abc/other", "expected a path of the form"),
        ("", "expected a path of the form"),
        ("{folder}/nothing/model", "No such file or directory"),
        ("{folder}/linked/model", "leads out of {folder} through a link"),
        ("{folder}/devices/model", "must not be below /dev, /proc or /sys"),
        ("{folder}/empty/model", "it contains no folder of a model"),
        ("{folder}/many/model", "it contains the models a, b. An archive must contain one model"),
    ],
)
def test_wrong_urls_get_400_and_the_reason(client, archives, tmp_path, url, text):
    archives.add("abc", adder=adder_config())
    (tmp_path / "outside" / "adder").mkdir(parents=True)
    for name, target in (("linked", tmp_path / "outside"), ("devices", "/dev")):
        (archives.folder / name).mkdir()
        (archives.folder / name / "model").symlink_to(target)
    (archives.folder / "empty" / "model").mkdir(parents=True)
    archives.add("many", a=adder_config(), b=adder_config())
    response = load(client, "abc", url.format(folder=archives.folder))
    assert response.status_code == 400
    assert text.format(folder=archives.folder) in response.json()["error"]


def test_a_body_that_is_no_json_or_has_no_name_gets_400(client):
    assert "failed to parse the request JSON" in client.post("/models", content=b"A").text
    response = client.post("/models", json={"url": "/x"})
    assert response.status_code == 400
    assert "'model_name' is required" in response.json()["error"]
