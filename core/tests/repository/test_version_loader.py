from __future__ import annotations

from types import SimpleNamespace

import pytest

from tritonpy.api.repository import ModelListing
from tritonpy.repository.model_table import ModelTable
from tritonpy.repository.prepared_model import PreparedModel
from tritonpy.repository.shared_objects import SharedObjects
from tritonpy.repository.version_loader import VersionLoader
from tritonpy_testing import model_config
from tritonpy_types.errors import Internal, InvalidArgument, NotFound

ALL = model_config('name: "m" version_policy { all {} }')


class Model:
    def __init__(self, version):
        self.version, self.closed, self.load_seconds = version, False, 0.0

    def close(self):
        self.closed = True


class Loader:
    """Raises the given errors for each version."""

    def __init__(self, failures):
        self.failures = {version: list(errors) for version, errors in failures.items()}
        self.calls, self.models = [], []

    def hint(self, text, listing, directory):
        return ""

    def complete(self, prepared):
        self.calls.append("complete")

    def load(self, prepared, version):
        self.calls.append(version)
        errors = self.failures.get(version)
        if errors:
            raise errors.pop(0)
        self.models.append(Model(version))
        return self.models[-1]


def load(files=("1/x", "2/x"), config=ALL, retries=0, named=(), **failures):
    loader, table = Loader({int(key[1:]): errors for key, errors in failures.items()}), ModelTable()
    listing = ModelListing("m", "", dict.fromkeys(files, ""))
    prepared = PreparedModel(
        listing, None, config, "", None, None, None, SharedObjects(), requested_versions=named
    )
    loading = VersionLoader(table, loader, retries)
    return SimpleNamespace(
        loader=loader, table=table, run=lambda: loading.load(prepared, loading.choose(prepared))
    )


def states(run):
    return [(line.version, line.state, line.reason) for line in run.table.index("m")]


def test_the_configuration_is_completed_and_every_chosen_version_loads():
    run = load()
    models = run.run()
    assert run.loader.calls == ["complete", 1, 2]
    assert sorted(models) == [1, 2]
    assert all(model.load_seconds > 0 for model in models.values())
    assert [state for _, state, _ in states(run)] == ["LOADING", "LOADING"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no luck"), "Internal: ValueError: no luck"),
        (Internal("no luck"), "Internal: no luck"),
        (InvalidArgument("no luck"), "Invalid argument: no luck"),
        (NotFound("no luck"), "Not found: no luck"),
    ],
)
def test_when_a_version_fails_loaded_versions_close_and_the_reason_is_reported(error, reason):
    run = load(v2=[error])
    with pytest.raises(Internal) as failed:
        run.run()
    assert failed.value.message == f"version 2 is at UNAVAILABLE state: {reason};"
    assert [model.closed for model in run.loader.models] == [True]
    assert states(run) == [("1", "UNAVAILABLE", "unloaded"), ("2", "UNAVAILABLE", reason)]


def test_a_failed_load_is_tried_again_as_often_as_configured(caplog):
    run = load(retries=2, v1=[ValueError("no"), ValueError("not yet")])
    assert sorted(run.run()) == [1, 2]
    assert run.loader.calls == ["complete", 1, 1, 1, 2]
    assert (
        "failed to load 'm' version 1, retrying: Internal: ValueError: not yet" in caplog.messages
    )


def test_the_last_attempt_decides():
    run = load(retries=1, v1=[ValueError("first"), ValueError("second"), ValueError("third")])
    with pytest.raises(Internal, match="second"):
        run.run()


@pytest.mark.parametrize("files", [[], ["config.pbtxt"], ["01/x"], ["x/1"]])
def test_a_model_without_a_version_does_not_load(files):
    with pytest.raises(InvalidArgument) as failed:
        load(files).run()
    assert (
        failed.value.message
        == "at least one version must be available under the version policy of model 'm'"
    )


def test_folders_that_look_like_versions_and_versions_that_are_missing_are_logged(caplog):
    config = model_config("version_policy { specific { versions: [1, 7] } }")
    assert sorted(load(["1/x", "02/x"], config).run()) == [1]
    assert caplog.messages == [
        "ignore version directory '02' which contains leading zeros in its directory name",
        "version 7 is specified for model 'm', but the version directory is not present",
    ]


def test_requested_versions_are_chosen_regardless_of_the_policy():
    config = model_config("version_policy { specific { versions: 1 } }")
    run = load(["1/x", "2/x", "3/x"], config, named=(3, 2))
    assert sorted(run.run()) == [2, 3]


def test_a_missing_requested_version_is_rejected():
    with pytest.raises(InvalidArgument) as raised:
        load(["1/x"], named=(1, 7, 8)).run()
    assert str(raised.value) == "model 'm' has no version 7, 8 in its folder"
