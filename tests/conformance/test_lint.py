"""`tritonpy lint` reports an error for exactly those models that the servers refuse to load."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.conformance import http_response, repository
from tests.conformance.exchange import Http, keyed
from tests.conformance.server import TRITONSERVER, Server, running, triton_command, tritonpy_command
from tests.conformance.topics import configurations, ensemble_flaws
from tritonpy_checks import Level
from tritonpy_config.model_json import read_config_json
from tritonpy_config.model_text import config_to_text
from tritonpy_config.text_tree import tokens
from tritonpy_lint.linting import LintOptions, lint

FLAGS = ("--model-control-mode=none", "--exit-on-error=false", "--strict-readiness=false")
LOAD_S = 90.0
# Code that fails when it runs, which lint never does, or that ends or stops the process.
RUNTIME_FAILURES = frozenset(
    {
        "bls_at_start", "broken_at_import", "broken_exit_at_import", "broken_exits_at_once",
        "broken_import", "broken_import_name", "refused", "completing", "completing_asks",
        "completing_leaves", "constructor_raises", "starting", "starting_aborts",
        "starting_is_killed", "starting_leaves_at_once",
    }
)  # fmt: skip
# Triton loads a model whose input is listed twice; tritonpy refuses it.
STRICTER_THAN_TRITON = frozenset({"an input twice"})


def write_flaws(folder: Path) -> dict[str, str]:
    """Write a model per flawed configuration and return the flaws by the model's name."""
    names = {}
    corpora = (("flaw", configurations.FLAWS, True), ("ensemble", ensemble_flaws.FLAWS, False))
    for prefix, flaws, has_code in corpora:
        for number, (flaw, config) in enumerate(flaws.items()):
            parsed = read_config_json(json.dumps(config))
            if parsed.problems:  # no text can have this flaw
                continue
            name = f"{prefix}_{number}"
            names[name] = flaw
            (folder / name / "1").mkdir(parents=True)
            text = config_to_text(parsed.config)
            (folder / name / "config.pbtxt").write_text(text, encoding="utf-8")
            if has_code:
                code = repository.MODELS / "identity" / "1" / "model.py"
                shutil.copy(code, folder / name / "1" / "model.py")
    return names


def refused_by_lint(folder: Path) -> set[str]:
    """Return the models with errors."""
    found = lint(LintOptions(paths=[str(folder)])).findings
    return {finding.model for finding in found if finding.level is Level.ERROR}


def refused_by(server: Server, *, gives_reasons: bool = True) -> set[str]:
    """Return the models that are not ready, once no model is waiting or loading.

    Triton gives no reason for an invalid configuration, but opens its ports when all loads ended.
    """
    request = keyed(Http("/v2/repository/index", b"{}"))
    deadline = time.monotonic() + LOAD_S
    while time.monotonic() < deadline:
        entries = http_response.send(server.ports["http"], request)["json"]
        ready = {each["name"] for each in entries if each.get("state") == "READY"}
        failed = {each["name"] for each in entries if not gives_reasons or each.get("reason")}
        if ready | failed == {each["name"] for each in entries}:
            return {each["name"] for each in entries} - ready
        time.sleep(0.2)
    raise AssertionError("the models were not loaded in time")


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Mutated configurations of Python models and ensembles, and the models that they need."""
    folder = tmp_path_factory.mktemp("lint") / "models"
    every = repository.write(folder.with_name("all"))
    folder.mkdir()
    for path in every.iterdir():
        if path.name.startswith("stood_on") or path.name in {"identity", "versions"}:
            shutil.copytree(path, folder / path.name)
    return folder, write_flaws(folder)


NUMBERS = ("0", "1", "2", "3", "4", "8", "-1", "-2")
TEXTS = ('"x"', '"IN"', '"python"', '"model.py"', '""')
TYPES = ("TYPE_INT8", "TYPE_FP32", "TYPE_STRING", "TYPE_INVALID", "TYPE_INT64")
KINDS = ("KIND_CPU", "KIND_GPU", "KIND_AUTO", "KIND_MODEL")


def mutated(text: str, random: Random) -> str:
    """Return a configuration in which one or two values are others of their kind, or are missing."""
    words = [token.text for token in tokens(text) if token.text]
    for _ in range(random.randint(1, 2)):
        places = [place for place, word in enumerate(words) if choices_for(word)]
        place = random.choice(places)
        if random.random() < 0.05:
            del words[place]
        else:
            words[place] = random.choice(choices_for(words[place]))
    return " ".join(words)


def choices_for(word: str) -> tuple[str, ...]:
    """Return other values of the kind of a word; none for the name of a field."""
    if word.startswith('"'):
        return TEXTS
    if word.startswith("TYPE_"):
        return TYPES
    if word.startswith("KIND_"):
        return KINDS
    return NUMBERS if word.lstrip("-").isdigit() else ()


def write_mutations(folder: Path, count: int, seed: int) -> None:
    """Write models of this suite with mutated configurations."""
    random, every = Random(seed), repository.write(folder.with_name("all"))
    plain = ("identity", "raw_", "labelled", "queue_", "sequenced", "remembering", "reshaped")
    sources = sorted(path for path in every.iterdir() if path.name.startswith(plain))
    for number in range(count):
        source = random.choice(sources)
        target = folder / f"mutated_{number}"
        shutil.copytree(source, target)
        text = (source / "config.pbtxt").read_text(encoding="utf-8")
        (target / "config.pbtxt").write_text(mutated(text, random), encoding="utf-8")


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_configurations_are_refused_by_both_or_none(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    write_mutations(folder, 100, seed)
    with running(tritonpy_command(), folder, tmp_path / "log", *FLAGS) as server:
        refused = refused_by(server)
    assert 10 < len(refused) < 90
    assert refused_by_lint(folder) == refused


@pytest.fixture
def tritonpy_server(flawed: tuple[Path, dict[str, str]], tmp_path: Path) -> Iterator[Server]:
    """Tritonpy with the mutated configurations."""
    with running(tritonpy_command(), flawed[0], tmp_path / "log", *FLAGS) as server:
        yield server


def test_errors_are_the_refusals_of_tritonpy(
    flawed: tuple[Path, dict[str, str]], tritonpy_server: Server
) -> None:
    folder, names = flawed
    assert len(names) > 60
    assert refused_by_lint(folder) == refused_by(tritonpy_server)


def test_errors_are_the_refusals_of_triton(
    flawed: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    if TRITONSERVER not in os.environ:
        pytest.skip(f"needs the real tritonserver: set {TRITONSERVER} to its path")
    folder, names = flawed
    with running(triton_command(), folder, tmp_path / "log", *FLAGS) as server:
        refused = refused_by(server, gives_reasons=False)
    stricter = {name for name, flaw in names.items() if flaw in STRICTER_THAN_TRITON}
    assert refused_by_lint(folder) - stricter == refused


def test_valid_models_have_no_error_and_broken_ones_do(
    tmp_path: Path, tritonpy_models: tuple[Path, set[str]]
) -> None:
    folder, refused = tritonpy_models
    found = refused_by_lint(folder)
    valid = {path.name for path in folder.iterdir()} - refused
    assert len(valid) > 100
    assert found & valid == set()
    assert refused - found <= RUNTIME_FAILURES


@pytest.fixture(scope="module")
def tritonpy_models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """All models of this suite, and those that tritonpy refuses."""
    folder = repository.write(tmp_path_factory.mktemp("valid") / "models")
    log = folder.with_name("log")
    with running(tritonpy_command(), folder, log, *FLAGS) as server:
        return folder, refused_by(server)
