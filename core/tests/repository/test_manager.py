from __future__ import annotations

import threading

import pytest

from tritonpy.repository.overrides import write_override
from tritonpy_testing import ModelRepository
from tritonpy_types.errors import Internal, InvalidArgument, NotFound

from ..toys.doubler import Gate, gated
from ..toys.serving import ToyPlugin, ask, config_of, numbers, request_of
from .version_backend import error_of, index, write

POLL_FAILED = "failed to load '{}', failed to poll from model repository"


class TestLoad:
    def test_an_unknown_model(self, serve):
        with serve() as server:
            error = error_of(server.engine.load_model, "missing")
        assert type(error) is Internal
        assert error.message == POLL_FAILED.format("missing")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("", "Model name cannot be empty. Please enter a valid name to deploy."),
            (
                "../m",
                "invalid model name '../m', model name must not contain path traversal characters",
            ),
            (
                "..",
                "invalid model name '..', model name must not contain path traversal characters",
            ),
            (
                "a\\..",
                "invalid model name 'a\\..', model name must not contain path traversal characters",
            ),
            (
                " ..",
                "invalid model name ' ..', model name must not contain path traversal characters",
            ),
            (
                ".\t",
                "invalid model name '.\t', model name must not contain path traversal characters",
            ),
            (" ", "Model name cannot be empty. Please enter a valid name to deploy."),
            ("\t\r\n", "Model name cannot be empty. Please enter a valid name to deploy."),
        ],
    )
    def test_an_invalid_name_is_rejected(self, serve, name, text):
        with serve() as server:
            error = error_of(server.engine.load_model, name)
        assert (type(error), error.message) == (InvalidArgument, text)

    def test_no_version_to_load(self, serve, model_repository):
        write(
            model_repository,
            "m",
            config='backend: "version_reporter" version_policy { specific { versions: 7 } }',
        )
        with serve() as server:
            error = error_of(server.engine.load_model, "m")
            assert error_of(server.engine.model_metadata, "m").message == (
                "Request for unknown model: 'm' has no available versions"
            )
        assert type(error) is InvalidArgument
        assert error.message == (
            "load failed for model 'm': at least one version must be available under the version policy of model 'm'\n"
        )

    def test_a_folder_without_versions(self, serve, model_repository):
        model_repository.add("m", config='backend: "version_reporter"', versions={})
        with serve() as server:
            assert "at least one version" in error_of(server.engine.load_model, "m").message

    def test_a_backend_that_raises(self, serve, model_repository):
        for version, text in ((1, ""), (2, "cannot be loaded")):
            write(
                model_repository,
                "m",
                text,
                version,
                'backend: "version_reporter" version_policy { all {} }',
            )
        with serve() as server:
            error = error_of(server.engine.load_model, "m")
            reason = "Internal: ValueError: no weights"
            assert index(server) == [
                ("m", "1", "UNAVAILABLE", "unloaded"),
                ("m", "2", "UNAVAILABLE", reason),
            ]
        assert type(error) is InvalidArgument
        assert (
            error.message
            == f"load failed for model 'm': version 2 is at UNAVAILABLE state: {reason};\n"
        )

    def test_a_folder_called_otherwise_than_its_model(self, serve, model_repository):
        write(model_repository, "m", config='name: "else" backend: "version_reporter"')
        with serve() as server:
            message = error_of(server.engine.load_model, "m").message
        assert (
            "unexpected directory name 'm' for model 'else', directory name must equal model name"
            in message
        )

    def test_a_model_that_did_not_change_is_left_alone(self, serve, model_repository, event_log):
        write(model_repository, "m")
        with serve() as server:
            server.engine.load_model("m")
            server.engine.load_model("m")
            assert len(event_log.events("load")) == 1

    def test_a_failed_load_can_be_requested_again(self, serve, model_repository, number):
        write(model_repository, "m", "cannot be loaded")
        with serve() as server:
            error_of(server.engine.load_model, "m")
            write(model_repository, "m", 5)
            server.engine.load_model("m")
            assert number(server, "m") == 5
            assert index(server) == [("m", "1", "READY", "")]

    def test_loads_of_one_model_at_the_same_time_load_it_once(
        self, serve, model_repository, event_log
    ):
        write(model_repository, "m")
        with serve() as server:
            threads = [
                threading.Thread(target=server.engine.load_model, args=("m",)) for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(event_log.events("load")) == 1
            assert index(server) == [("m", "1", "READY", "")]


class TestSeveralRepositories:
    @pytest.fixture
    def other(self, tmp_path):
        return ModelRepository(tmp_path / "other")

    @pytest.fixture
    def both(self, model_repository, other):
        return {"repositories": [{"url": str(model_repository.path)}, {"url": other.path.as_uri()}]}

    def test_models_of_all_are_served(self, serve, model_repository, other, both, number):
        write(model_repository, "a", 1)
        write(other, "b", 2)
        with serve(mode="none", **both) as server:
            assert (number(server, "a"), number(server, "b")) == (1, 2)

    def test_a_model_in_two_of_them_is_refused_and_listed(
        self, serve, model_repository, other, both
    ):
        for repository in (model_repository, other):
            write(repository, "m")
        with serve(**both) as server:
            why = "model appears in two or more repositories"
            assert (
                error_of(server.engine.load_model, "m").message
                == f"{POLL_FAILED.format('m')}: {why}"
            )
            assert index(server) == [("m", "", "UNAVAILABLE", why)]
            assert index(server, ready=True) == []

    def test_a_model_that_appears_a_second_time_is_unloaded_by_a_poll(
        self, serve, model_repository, other, both, caplog
    ):
        caplog.set_level("INFO", "tritonpy")
        write(model_repository, "m")
        with serve(mode="poll", **both) as server:
            write(other, "m")
            server._repository.poll()
            assert error_of(server.engine.model_metadata, "m").message.endswith(
                "has no available versions"
            )
        assert "'m': model appears in two or more repositories" in caplog.messages


class TestOverride:
    CONFIG = '{"backend": "version_reporter", "version_policy": {"specific": {"versions": [1]}}}'

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        return folder

    def test_a_configuration_replaces_the_one_on_disk_until_a_load_finds_changed_files(
        self, serve, model_repository, number
    ):
        write(model_repository, "m", 10, version=1)
        write(model_repository, "m", 20, version=2)
        with serve() as server:
            server.engine.load_model("m")
            assert number(server, "m") == 20
            server.engine.load_model("m", self.CONFIG)
            assert number(server, "m") == 10
            server.engine.load_model("m")
            assert number(server, "m") == 10
            write(model_repository, "m", 30, version=2)
            assert number(server, "m") == 10
            server.engine.load_model("m")
            assert number(server, "m") == 30

    def test_a_configuration_is_kept_after_another_load_request_failed(
        self, serve, model_repository, number
    ):
        write(model_repository, "m", 10, version=1)
        write(model_repository, "m", 20, version=2)
        with serve() as server:
            server.engine.load_model("m")
            server.engine.load_model("m", self.CONFIG)
            error_of(server.engine.load_model, "m", "{")
            error_of(server.engine.load_model, "m", '{"backend": "none"}')
            server.engine.load_model("m")
            assert number(server, "m") == 10

    def test_a_configuration_ends_when_the_model_is_unloaded(self, serve, model_repository, number):
        write(model_repository, "m", 10, version=1)
        write(model_repository, "m", 20, version=2)
        with serve() as server:
            server.engine.load_model("m")
            server.engine.load_model("m", self.CONFIG)
            server.engine.unload_model("m")
            server.engine.load_model("m")
            assert number(server, "m") == 20

    def test_a_configuration_of_the_first_load_lasts_until_the_next_plain_load(
        self, serve, model_repository, number
    ):
        write(model_repository, "m", 10, version=1)
        write(model_repository, "m", 20, version=2)
        with serve() as server:
            server.engine.load_model("m", self.CONFIG)
            assert number(server, "m") == 10
            server.engine.load_model("m")
            assert number(server, "m") == 20
            server.engine.load_model("m", self.CONFIG)
            server.engine.load_model("m")
            assert number(server, "m") == 10

    @pytest.mark.parametrize(
        "config",
        [
            '{"backend": 3',
            '{"backendx": "version_reporter"}',
            '{"backend": "version_reporter", "max_batch_size": "x"}',
            "[]",
        ],
    )
    def test_a_broken_override_is_rejected_and_the_model_keeps_serving(
        self, serve, model_repository, number, config
    ):
        write(model_repository, "m", 10)
        with serve() as server:
            server.engine.load_model("m")
            error = error_of(server.engine.load_model, "m", config)
            assert number(server, "m") == 10
        assert isinstance(error, Internal)
        assert error.message.startswith(
            POLL_FAILED.format("m") + ": the 'config' parameter of the load request "
        )

    def test_files_replace_the_folder_until_they_are_unloaded(
        self, serve, model_repository, number, folder, event_log
    ):
        write(model_repository, "m", 10)
        with serve() as server:
            server.engine.load_model("m", "{}", {"file:3/model.txt": b"30"})
            assert number(server, "m") == 30
            assert [line[:3] for line in index(server)] == [("m", "3", "READY")]
            assert len(list(folder.iterdir())) == 1
            server.engine.load_model("m")
            assert number(server, "m") == 10
            event_log.wait_for_handles(("m", 1))
        assert list(folder.iterdir()) == []

    def test_files_of_a_request_can_create_a_model(self, serve, number, folder):
        with serve() as server:
            server.engine.load_model("m", "{}", {"file:1/model.txt": b"30"})
            assert number(server, "m") == 30
            assert error_of(server.engine.load_model, "m").message == POLL_FAILED.format("m")
            assert number(server, "m") == 30
            assert [line[:3] for line in index(server)] == [("m", "1", "READY")]
        assert list(folder.iterdir()) == []

    def test_files_need_a_configuration(self, serve):
        with serve() as server:
            error = error_of(server.engine.load_model, "m", None, {"file:1/model.txt": b""})
        assert error.message == "Load parameter 'config' must be specified for model file override"

    @pytest.mark.parametrize("key", ["file:\0", "file:1/a\0b"])
    def test_a_name_that_no_file_can_have_is_refused(self, serve, folder, key):
        with serve() as server:
            error = error_of(server.engine.load_model, "m", "{}", {key: b""})
        assert type(error) is InvalidArgument
        assert error.message.startswith("Invalid file parameter 'file:")
        assert list(folder.iterdir()) == []

    @pytest.mark.parametrize(
        "files",
        [
            {"file:../1/x": b""},
            {"file:1/model.txt": b"cannot be loaded"},
            {"file:1/x\0": b""},
            {"file:x/model": b""},
        ],
    )
    def test_files_of_a_failed_load_are_removed(self, serve, files, folder):
        with serve() as server:
            error_of(server.engine.load_model, "m", "{}", files)
        assert list(folder.iterdir()) == []

    def test_write_override_creates_the_folder(self, folder):
        with write_override("m", {"file:1/x": b""}):
            assert [path.name.startswith("tritonpy-m-") for path in folder.iterdir()] == [True]


class TestUnload:
    def test_an_unloaded_model_is_listed_and_unavailable(self, serve, model_repository, event_log):
        write(model_repository, "m")
        with serve() as server:
            server.engine.load_model("m")
            server.engine.unload_model("m")
            error = error_of(server.engine.model_metadata, "m")
            event_log.wait_for_handles()
            assert server._repository._drainer.wait(10)
            assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded")]
            assert index(server, ready=True) == []
            assert server.engine.is_ready()
        assert (type(error), error.message) == (
            NotFound,
            "Request for unknown model: 'm' has no available versions",
        )

    def test_an_unknown_model_is_no_error_and_leaves_no_trace(self, serve):
        with serve() as server:
            server.engine.unload_model("missing")
            assert server._repository._models._locks == {}
            assert index(server) == []

    def test_requests_in_flight_finish_and_the_model_can_be_loaded_meanwhile(
        self, serve, model_repository, recorder
    ):
        gate = Gate()
        model_repository.add("m", config_of("gated"))
        with serve(ToyPlugin({"gated": gated(gate)})) as server:
            server.engine.load_model("m")
            request = ask(server.engine, recorder, "m", [4])
            gate.wait_for(1)
            server.engine.unload_model("m")
            assert index(server) == [("m", "1", "UNLOADING", "")]
            server.engine.load_model("m")
            assert index(server) == [("m", "1", "READY", "")]
            gate.open()
            (responses,) = recorder.wait(request)
            assert numbers(responses) == [[8]]
            assert server._repository._drainer.wait(10)
            assert index(server) == [("m", "1", "READY", "")]


class TestReload:
    ROUNDS = 30

    def test_clients_notice_a_reload_only_by_the_results(
        self, serve, model_repository, recorder, number
    ):
        write(model_repository, "m", 0)
        completed, stop = [], threading.Event()

        def send_requests(server):
            while not stop.is_set():
                request = ask(server.engine, recorder, "m", [0])
                (responses,) = recorder.wait(request)
                completed.append((request, numbers(responses)))

        with serve() as server:
            server.engine.load_model("m")
            threads = [threading.Thread(target=send_requests, args=(server,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            try:
                for round_ in range(1, self.ROUNDS + 1):
                    write(model_repository, "m", round_)
                    server.engine.load_model("m")
                    assert [number(server, "m") for _ in range(3)] == [round_] * 3
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
            assert server._repository._drainer.wait(10)
        assert len(completed) >= 4
        assert {len(values) for _, values in completed} == {1}
        recorder.check(*(request for request, _ in completed))

    def test_a_failed_reload_keeps_the_old_version_and_reports_the_reason(
        self, serve, model_repository, number, caplog
    ):
        caplog.set_level("INFO", "tritonpy")
        write(model_repository, "m", 1)
        with serve() as server:
            server.engine.load_model("m")
            write(model_repository, "m", "cannot be loaded")
            error = error_of(server.engine.load_model, "m")
            assert "no weights" in error.message
            assert (
                "failed to load 'm' version 1: Internal: ValueError: no weights" in caplog.messages
            )
            assert "failed to load 'm'; loaded versions keep serving" in caplog.messages
            assert number(server, "m") == 1
            assert index(server) == [("m", "1", "READY", "")]

    def test_a_new_version_takes_over_and_the_old_one_is_unloaded(
        self, serve, model_repository, number, event_log
    ):
        write(model_repository, "m", 1)
        with serve() as server:
            server.engine.load_model("m")
            write(model_repository, "m", 2, version=2)
            server.engine.load_model("m")
            assert number(server, "m") == 2
            event_log.wait_for_handles(("m", 2))
            assert server._repository._drainer.wait(10)
            assert index(server) == [("m", "1", "UNAVAILABLE", "unloaded"), ("m", "2", "READY", "")]


def test_a_request_during_a_reload_goes_to_the_new_version(
    serve, model_repository, recorder, number
):
    write(model_repository, "m", 1)
    with serve() as server:
        server.engine.load_model("m")
        old = server.engine._table.find("m")
        write(model_repository, "m", 2)
        find = server.engine._table.find
        found = []

        def find_late(name, version):
            if not found:
                found.append(True)
                server.engine.load_model("m")
                assert server._repository._drainer.wait(10)
                return old
            return find(name, version)

        server.engine._table.find = find_late
        request = request_of(recorder, "m", [0])
        server.engine.infer(request)
        (responses,) = recorder.wait(request)
        assert numbers(responses) == [[2]]
