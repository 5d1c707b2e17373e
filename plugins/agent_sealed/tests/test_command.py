from __future__ import annotations

import pytest

import tritonpy_agent_sealed
from tritonpy.cli import main
from tritonpy_agent_sealed.command import SealCommand
from tritonpy_testing import CommandContract


class TestContract(CommandContract):
    plugin_class = SealCommand
    plugin = tritonpy_agent_sealed
    name = "seal"

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.arguments = ("keys", str(tmp_path / "some"))


@pytest.fixture
def made(tmp_path, capsys):
    assert main(["seal", "keys", str(tmp_path / "new")]) == 0
    capsys.readouterr()
    return tmp_path / "new"


def test_keys_are_only_readable_by_their_owner(made):
    assert {path.name: path.stat().st_mode & 0o777 for path in made.iterdir()} == {
        "signing.pem": 0o600, "verify.pem": 0o644, "encryption.key": 0o600,
    }  # fmt: skip


def test_keys_are_never_overwritten(made, capsys):
    before = (made / "signing.pem").read_bytes()
    assert main(["seal", "keys", str(made)]) != 0
    assert "signing.pem" in capsys.readouterr().err
    assert (made / "signing.pem").read_bytes() == before


def test_no_key_is_created_next_to_one_of_another_set(made, capsys):
    (made / "signing.pem").unlink()
    assert main(["seal", "keys", str(made)]) != 0
    assert "verify.pem exists already" in capsys.readouterr().err
    assert not (made / "signing.pem").exists()


@pytest.mark.parametrize(
    ("more", "what"), [(["--encryption-key"], "encrypted and signed"), ([], "signed")]
)
def test_the_command_seals_a_model_and_prints_how(made, source, tmp_path, capsys, more, what):
    keys = [
        "--signing-key",
        str(made / "signing.pem"),
        *more,
        *([str(made / "encryption.key")] if more else []),
    ]
    assert main(["seal", "model", str(source), str(tmp_path / "m"), *keys]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'm'}: 4 files, {what}\n"


def test_an_error_is_one_line(source, tmp_path, capsys):
    assert (
        main(["seal", "model", str(source), str(tmp_path / "m"), "--signing-key", "/no/key"]) != 0
    )
    assert capsys.readouterr().err.count("\n") == 1
