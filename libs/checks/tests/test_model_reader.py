"""The reader finds the problems of all stages, and compares ensembles with their members."""

from __future__ import annotations

from pathlib import Path

from tritonpy_checks import LintModel, Machine
from tritonpy_checks.model_reader import InstalledBackend, ModelReader, RepositoryModel
from tritonpy_config.known_backends import BackendFiles

BACKENDS = {"python": InstalledBackend(BackendFiles("python", (), ("model.py",)))}
TENSORS = (
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)


def files(name: str, config: str | None, *others: str) -> RepositoryModel:
    """Return a model that exists in memory only."""
    content = dict.fromkeys(others or ("1/model.py",), b"")
    if config is not None:
        content["config.pbtxt"] = config.encode()
    return RepositoryModel(name, list(content), content.get)


def read(*models: RepositoryModel) -> dict[str, LintModel]:
    return ModelReader(BACKENDS, Machine(cores=2)).read(models)


def codes(model: LintModel) -> list[str]:
    return [problem.code for problem in model.problems]


def test_a_model_without_a_configuration_is_complete() -> None:
    model = read(files("m", None))["m"]
    assert codes(model) == []
    assert model.config is not None
    assert model.config.backend == "python"
    assert list(model.versions) == [1]


def test_problems_of_text_values_and_files_are_found_together() -> None:
    config = f'backend: "python"\nnonsense: 1\nmax_batch_size: -1\n{TENSORS}'
    model = read(files("m", config, "v1/model.py"))["m"]
    assert codes(model) == ["F007", "G001", "F001"]
    assert not model.is_complete


def test_a_backend_that_is_not_installed_is_a_problem_of_its_own() -> None:
    model = read(files("m", f'backend: "tensorrt"\n{TENSORS}', "1/model.plan"))["m"]
    assert codes(model) == ["B002"]


def test_the_library_that_runtime_names_replaces_the_plugin_of_the_backend() -> None:
    config = f'platform: "tensorrt_plan" backend: "tensorrt" runtime: "libtriton_own.so"\n{TENSORS}'
    model = read(files("m", config, "1/weights", "libtriton_own.so"))["m"]
    assert codes(model) == []
    model = read(files("m", config, "1/weights"))["m"]
    assert "B002" in codes(model)


def ensemble(member: str, version: int = -1) -> str:
    return (
        f'platform: "ensemble"\n{TENSORS}ensemble_scheduling {{ step {{ model_name: "{member}" '
        f'model_version: {version} input_map {{ key: "IN" value: "IN" }} '
        'output_map { key: "OUT" value: "OUT" } } }'
    )


def test_members_are_compared() -> None:
    member = files("member", f'backend: "python"\n{TENSORS.replace("FP32", "INT8")}')
    found = read(member, files("e", ensemble("member"), "1/"))
    assert set(codes(found["e"])) == {"E002"}


def test_missing_members_and_versions_are_found() -> None:
    member = files("member", f'backend: "python"\n{TENSORS}')
    assert codes(read(member, files("e", ensemble("other"), "1/"))["e"]) == ["E003"]
    assert codes(read(member, files("e", ensemble("member", 2), "1/"))["e"]) == ["E003"]
    assert codes(read(member, files("e", ensemble("member"), "1/"))["e"]) == []


def test_a_cycle_of_ensembles_is_found() -> None:
    found = read(files("a", ensemble("b"), "1/"), files("b", ensemble("a"), "1/"))
    assert codes(found["a"]) == codes(found["b"]) == ["E003"]


def test_the_files_of_a_folder_are_listed(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "config.pbtxt").write_text("")
    found = RepositoryModel.of(tmp_path)
    assert set(found.files) == {"1/", "config.pbtxt"}
    assert found.read("config.pbtxt") == b""
    assert found.read("none") is None
