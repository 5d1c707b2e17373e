"""Log lines of Triton that tools depend on."""

from __future__ import annotations

import pytest

from tritonpy_testing import ModelRepository

from .ensembles import PLUGIN, write_ensemble
from .version_backend import error_of, write

ALL = 'backend: "version_reporter" version_policy { all {} }'


@pytest.fixture(autouse=True)
def _every_line(caplog):
    caplog.set_level("INFO", "tritonpy")


def levels(caplog, text):
    return [record.levelname for record in caplog.records if record.getMessage() == text]


def test_each_load_of_a_model_with_several_versions_is_logged_once(serve, model_repository, caplog):
    for version in (1, 2, 3):
        write(model_repository, "m", "", version, ALL)
    with serve() as server:
        for times in (1, 2):
            server.engine.load_model(
                "m",
                '{"backend": "version_reporter", "versionPolicy": {"all": {}}}'
                if times == 1
                else None,
            )
            write(model_repository, "m", "", 3, ALL)
            assert sum("successfully loaded 'm'" in line for line in caplog.messages) == times
    for version in (1, 2, 3):
        assert f"loading: m:{version}" in caplog.messages


def test_the_load_of_an_ensemble_is_logged_when_it_serves(serve, model_repository, caplog):
    write(model_repository, "m")
    write_ensemble(model_repository, "e", "m")
    with serve(PLUGIN) as server:
        server.engine.load_model("e")
    assert levels(caplog, "successfully loaded 'e'") == ["INFO"]


def test_a_version_that_fails_is_named_with_its_error(serve, model_repository, caplog):
    write(model_repository, "m", "cannot be loaded", 4)
    write(model_repository, "n", "cannot be completed", 5)
    with serve() as server:
        for name in "mn":
            error_of(server.engine.load_model, name)
    assert levels(caplog, "failed to load 'm' version 4: Internal: ValueError: no weights") == [
        "ERROR"
    ]
    assert levels(caplog, "failed to load 'n' version 5: Internal: ValueError: no signature") == [
        "ERROR"
    ]
    assert levels(caplog, "failed to load 'm'") == ["INFO"]


def test_a_model_without_a_version_to_serve(serve, model_repository, caplog):
    model_repository.add("m", config='backend: "version_reporter"', versions={})
    with serve() as server:
        error_of(server.engine.load_model, "m")
    text = "failed to load model 'm': at least one version must be available under the version policy of model 'm'"
    assert levels(
        caplog, f"{text}. It has no version folder: put the model's file into 'm/1/'."
    ) == ["ERROR"]


@pytest.mark.parametrize("at_start", [True, False])
def test_a_model_that_is_in_no_repository(serve, model_repository, caplog, at_start):
    write(model_repository, "m")
    with serve(control={"load": ["missing"] if at_start else ["m"]}, exit_on_error=False) as server:
        if not at_start:
            error_of(server.engine.load_model, "missing")
    assert levels(
        caplog, "failed to poll model 'missing': model not found in any model repository."
    ) == ["ERROR"]


def test_a_model_that_is_in_two_repositories(serve, model_repository, tmp_path, caplog):
    other = ModelRepository(tmp_path / "other")
    for repository in (model_repository, other):
        write(repository, "m")
    with serve(
        repositories=[{"url": str(each.path)} for each in (model_repository, other)]
    ) as server:
        error_of(server.engine.load_model, "m")
    assert levels(caplog, "failed to poll model 'm': not unique across all model repositories") == [
        "ERROR"
    ]


def test_a_model_whose_configuration_cannot_be_read(serve, model_repository, caplog):
    write(model_repository, "m", config="nonsense: 3")
    with serve() as server:
        error_of(server.engine.load_model, "m")
    (line,) = (
        line for line in caplog.messages if line.startswith("Poll failed for model directory 'm': ")
    )
    assert "unknown field 'nonsense'" in line
