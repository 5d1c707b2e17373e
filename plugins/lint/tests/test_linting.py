"""Repositories, models and server.yaml are checked together; fixes and ignores work."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonpy import StartupError
from tritonpy_checks import Finding, Level, Machine
from tritonpy_lint.fixing import apply, diff, plan_fixes
from tritonpy_lint.linting import LintOptions, lint

BASE = (
    'backend: "python"\nmax_batch_size: 8\ndynamic_batching { }\n'
    'input { name: "IN" data_type: TYPE_FP32 dims: [ 4 ] }\n'
    'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] }\n'
)
MACHINE = Machine(cores=2)


def check(*paths: Path, **options: object) -> list[Finding]:
    given = LintOptions(paths=[str(path) for path in paths], machine=MACHINE, **options)
    return lint(given).findings


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_valid_model_has_no_finding(repository) -> None:
    repository.add("good")
    assert check(repository.path) == []


def test_stages_do_not_hide_each_other(repository) -> None:
    repository.add(
        "bad",
        'name: "other"\nbackend: "python"\ndynamic_baching { }\nmax_batch_size: -1\n'
        'output { name: "OUT" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "none.txt" }\n'
        "version_policy { specific { versions: [ 7 ] } }\n",
        **{"1/model.py": "class A:\n  pass\n"},
    )
    found = set(codes(check(repository.path)))
    assert found >= {"F003", "F007", "G001", "F004", "V001"}


def test_a_finding_has_its_place_and_its_remedy(repository) -> None:
    folder = repository.add("bad", f"# a comment\n{BASE}dynamic_baching {{ }}\n")
    [finding] = [each for each in check(repository.path) if each.code == "F007"]
    assert finding.file == str(folder / "config.pbtxt")
    assert (finding.line, finding.column) == (7, 1)
    assert finding.level is Level.ERROR
    assert "did you mean 'dynamic_batching'" in finding.message


def test_one_model_of_a_repository_is_checked_with_the_others_as_members(repository) -> None:
    repository.add("member")
    repository.add("broken", "max_batch_size: x")
    ensemble = repository.add(
        "pipeline",
        'platform: "ensemble" max_batch_size: 8\n'
        'input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "B" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'ensemble_scheduling { step { model_name: "member" model_version: -1\n'
        'input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } } }\n',
    )
    for path in (ensemble, ensemble / "config.pbtxt"):
        assert check(path) == []


def test_an_ensemble_names_the_closest_member_and_is_fixed(repository) -> None:
    repository.add("encoder")
    repository.add(
        "pipeline",
        'platform: "ensemble" max_batch_size: 8\n'
        'input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "B" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'ensemble_scheduling { step { model_name: "encodr" model_version: -1\n'
        'input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } } }\n',
    )
    found = check(repository.path)
    assert codes(found) == ["E003"]
    assert "'encoder'" in found[0].advice
    apply(plan_fixes(found, unsafe=True))
    assert check(repository.path) == []


def test_safe_fixes_keep_comments_and_layout(repository) -> None:
    folder = repository.add(
        "digits",
        'name: "digit"  # the name\n# the backend\nplatform: "python"\n'
        f"max_batch_size:   8 # rows\ndynamic_baching {{ }}\n{BASE.split('}', 1)[1].lstrip()}",
    )
    findings = check(repository.path)
    printed = "".join(diff(plan_fixes(findings, unsafe=False)))
    assert "-dynamic_baching { }" in printed
    for _ in range(3):
        apply(plan_fixes(check(repository.path), unsafe=False))
    text = (folder / "config.pbtxt").read_text()
    assert text.startswith('# the backend\nbackend: "python"\nmax_batch_size:   8 # rows\n')
    assert check(repository.path) == []


def test_files_are_moved_to_their_places(repository) -> None:
    folder = repository.add("late")
    (folder / "1").rename(folder / "v1")
    found = check(repository.path)
    assert codes(found) == ["F001"]
    assert plan_fixes(found, unsafe=False).fixes == []
    apply(plan_fixes(found, unsafe=True))
    assert (folder / "1" / "model.py").is_file()
    assert check(repository.path) == []


def test_another_file_name_is_configured(repository) -> None:
    folder = repository.add("renamed")
    (folder / "1" / "model.py").rename(folder / "1" / "digits.py")
    apply(plan_fixes(check(repository.path), unsafe=False))
    assert 'default_model_filename: "digits.py"' in (folder / "config.pbtxt").read_text()
    assert check(repository.path) == []


def test_ignore_comments_and_unused_ones(repository) -> None:
    text = BASE.replace("dynamic_batching { }\n", "")
    assert codes(check(repository.add("advised", text))) == ["D001"]
    ignored = text.replace("max_batch_size: 8", "max_batch_size: 8  # lint: ignore[D001] by hand")
    assert check(repository.add("ignored", ignored)) == []
    above = text.replace("max_batch_size", "# lint: ignore[D] by hand\nmax_batch_size")
    assert check(repository.add("above", above)) == []
    whole = f"# lint: ignore-file[D001]\n{text}"
    assert check(repository.add("whole", whole)) == []
    unused = check(repository.add("unused", f"# lint: ignore[S001, D003]\n{BASE}"))
    assert [(each.code, each.line) for each in unused] == [("L001", 1), ("L001", 1)]


def test_codes_are_selected_and_ignored(repository) -> None:
    repository.add("bad", BASE.replace("dynamic_batching { }", 'name: "other"'))
    assert codes(check(repository.path)) == ["D001", "F003"]
    assert codes(check(repository.path, select=["D"])) == ["D001"]
    assert codes(check(repository.path, ignore=["D", "F"])) == []


def test_server_yaml_has_positions_and_selects_codes(repository, tmp_path: Path) -> None:
    repository.add("advised", BASE.replace("dynamic_batching { }\n", ""))
    server = tmp_path / "server.yaml"
    server.write_text("repositories: [{url: models}]\nlint: {ignore: [D001]}\n")
    assert check(server=server) == []
    server.write_text("repositories: [{url: models}]\nfrontends:\n  http:\n    prt: 8000\n")
    [found] = [each for each in check(server=server) if each.code == "Y001"]
    assert (found.file, found.line) == (str(server), 4)
    server.write_text("hots: 0.0.0.0\n")
    [found] = [each for each in check(repository.path, server=server) if each.code == "Y001"]
    assert "host" in found.message


def test_ensembles_find_members_in_other_repositories(repository, tmp_path: Path) -> None:
    repository.add("member")
    other = type(repository)(tmp_path / "other")
    text = (
        'platform: "ensemble" max_batch_size: 8\n'
        'input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "B" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'ensemble_scheduling { step { model_name: "member" model_version: -1\n'
        'input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } } }\n'
    )
    other.add("pipeline", text)
    assert codes(check(other.path)) == ["E003"]
    assert check(repository.path, other.path) == []
    assert check(other.path, repository.path) == []
    (repository.path / "member" / "config.pbtxt").write_text("backnd: 1")
    assert set(codes(check(other.path, repository.path))) == {"E004", "F007"}


def test_a_name_in_two_repositories_of_a_server_is_an_error(repository, tmp_path: Path) -> None:
    repository.add("same")
    type(repository)(tmp_path / "other").add("same")
    server = tmp_path / "server.yaml"
    server.write_text("repositories: [{url: models}, {url: other}]\n")
    assert codes(check(server=server)) == ["R002"]
    server.write_text("repositories: [{url: models}, {url: other}]\nmodel_namespacing: true\n")
    assert check(server=server) == []


def test_links_are_followed(repository, tmp_path: Path) -> None:
    folder = repository.add("linked")
    (folder / "1").rename(tmp_path / "target")
    (folder / "1").symlink_to(tmp_path / "target")
    (folder / "loop").symlink_to(folder)
    assert check(repository.path) == []


def test_line_endings_are_kept(repository) -> None:
    folder = repository.add("windows")
    text = f'# Windows\nname: "other"\n{BASE}'.replace("\n", "\r\n")
    (folder / "config.pbtxt").write_bytes(text.encode())
    apply(plan_fixes(check(repository.path), unsafe=False))
    expected = text.replace('name: "other"\r\n', "")
    assert (folder / "config.pbtxt").read_bytes() == expected.encode()


def test_a_misspelled_parameter_names_the_closest_one(repository) -> None:
    parameter = 'parameters {{ key: "{}" value: {{ string_value: "1" }} }}\n'
    repository.add("typed", BASE + parameter.format("Execution_Env_Pat"))
    repository.add("own", BASE + parameter.format("my_setting"))
    [finding] = check(repository.path)
    assert (finding.code, finding.model) == ("B003", "typed")
    assert "'EXECUTION_ENV_PATH'" in finding.advice


def test_templates_and_json_have_one_finding(repository) -> None:
    repository.add("template", f"{BASE}priority: ${{level}}\nmore: ${{level}} ${{other}}\n")
    repository.add("json", '{"backend": "python"}')
    found = {each.model: each for each in check(repository.path)}
    assert found["template"].code == "F005"
    assert "${level}, ${other}" in found["template"].message
    assert found["json"].code == "F006"
    assert "JSON" in found["json"].message


def test_a_missing_path_is_an_error_for_the_caller(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="does not exist"):
        check(tmp_path / "none")


def test_many_models_are_checked_together(repository) -> None:
    for number in range(200):
        repository.add(f"model_{number}")
    assert check(repository.path) == []


def test_tensors_are_checked_even_without_a_known_backend(repository) -> None:
    text = 'platform: "onnxruntime"\ninput { name: "IN" data_type: TYPE_FP32 dims: [ 0 ] }\n'
    repository.add("unknown", text)
    assert {"B001", "S006"} <= set(codes(check(repository.path)))


def test_an_ensemble_without_platform_is_fixed(repository) -> None:
    repository.add("member")
    repository.add(
        "pipeline",
        "max_batch_size: 8\n"
        'input { name: "A" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'output { name: "B" data_type: TYPE_FP32 dims: [ 4 ] }\n'
        'ensemble_scheduling { step { model_name: "member" model_version: -1\n'
        'input_map { key: "IN" value: "A" } output_map { key: "OUT" value: "B" } } }\n',
        **{"1/model.py": "", "1/model.txt": ""},
    )
    folder = repository.path / "pipeline" / "1"
    for path in folder.iterdir():
        path.unlink()
    found = check(repository.path)
    assert codes(found) == ["B001"]
    apply(plan_fixes(found, unsafe=False))
    assert check(repository.path) == []
