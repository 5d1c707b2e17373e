from __future__ import annotations

import logging
import ssl
import subprocess

import pytest
import trustme

from tritonpy import StartupError
from tritonpy_network.frontend_options import TlsOptions
from tritonpy_network.tls_files import TlsFiles

CA = trustme.CA()
NAMES = ("certificate_file", "key_file", "client_ca_file")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    CA.cert_pem.write_to_path(tmp_path / "client_ca_file")
    return tmp_path


def write(folder):
    made = CA.issue_cert("localhost")
    made.cert_chain_pems[0].write_to_path(folder / "certificate_file")
    made.private_key_pem.write_to_path(folder / "key_file")


def files(folder, mutual=True):
    options = TlsOptions(**{name: str(folder / name) for name in NAMES}, mutual=mutual)
    return TlsFiles(options, "frontends.http.tls", logging.getLogger("tritonpy.test"))


def refusal(folder):
    with pytest.raises(StartupError) as error:
        files(folder).context()
    return str(error.value).replace(f"{folder}/", "")


def test_good_files_make_a_server_s_context(folder):
    context = files(folder).context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert files(folder, mutual=False).context().verify_mode is ssl.CERT_NONE


def test_client_files_are_only_needed_for_mutual_tls(folder):
    (folder / "client_ca_file").unlink()
    assert files(folder, mutual=False).contents()[2] is None
    files(folder, mutual=False).context()


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert (
        refusal(folder)
        == f"frontends.http.tls.{name} '{name}': cannot read the file: No such file or directory"
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_is_an_error(folder, name):
    (folder / name).unlink()
    (folder / name).mkdir()
    assert (
        refusal(folder)
        == f"frontends.http.tls.{name} '{name}': cannot read the file: Is a directory"
    )


@pytest.mark.parametrize("content", [b"", b"text", b"\0\xff"])
@pytest.mark.parametrize(
    ("name", "what"),
    [(NAMES[0], "certificate"), (NAMES[1], "private key"), (NAMES[2], "certificate")],
)
def test_a_file_with_other_contents_is_named(folder, name, what, content):
    (folder / name).write_bytes(content)
    assert (
        refusal(folder)
        == f"frontends.http.tls.{name} '{name}': the file has no {what} in PEM format"
    )


@pytest.mark.parametrize("name", [NAMES[0], NAMES[2]])
def test_a_damaged_certificate_is_named(folder, name):
    text = (folder / name).read_text()
    (folder / name).write_text(text[:28] + "A" * 12 + text[40:])
    assert refusal(folder) == f"frontends.http.tls.{name} '{name}': the certificate is damaged"


def test_a_damaged_key_is_named(folder):
    text = (folder / "key_file").read_text()
    (folder / "key_file").write_text(text[:32] + "A" * 12 + text[44:])
    assert refusal(folder).startswith(
        "frontends.http.tls.key_file 'key_file': OpenSSL rejects the key with its certificate: "
    )


def test_a_key_of_another_certificate_is_named(folder):
    CA.issue_cert("other").private_key_pem.write_to_path(folder / "key_file")
    assert refusal(folder) == (
        "frontends.http.tls.key_file 'key_file': the key does not match the first certificate of certificate_file"
    )


def test_swapped_certificate_and_key_are_refused(folder):
    (folder / "certificate_file").rename(folder / "other")
    (folder / "key_file").rename(folder / "certificate_file")
    (folder / "other").rename(folder / "key_file")
    assert (
        refusal(folder)
        == "frontends.http.tls.certificate_file 'certificate_file': the file has no certificate in PEM format"
    )


def test_an_encrypted_key_is_refused_without_a_prompt(folder):
    command = [
        "openssl",
        "pkey",
        "-aes256",
        "-passout",
        "pass:secret",
        "-in",
        "key_file",
        "-out",
        "encrypted",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "encrypted").rename(folder / "key_file")
    assert (
        refusal(folder)
        == "frontends.http.tls.key_file 'key_file': the key is encrypted; use a key without a password"
    )


def test_unchanged_files_are_not_read_again(folder):
    same = files(folder)
    same.context()
    assert same.renewed() is None


def test_files_that_change_are_read_once(folder, caplog):
    caplog.set_level(logging.INFO)
    changing = files(folder)
    changing.context()
    write(folder)
    assert isinstance(changing.renewed(), ssl.SSLContext)
    assert changing.renewed() is None
    assert "read the changed TLS files" in caplog.text


@pytest.mark.parametrize("content", [None, "text"])
def test_invalid_changed_files_are_not_used_and_logged_once(folder, caplog, content):
    changing = files(folder)
    changing.context()
    key = (folder / "key_file").read_text()
    if content is None:
        (folder / "key_file").unlink()
    else:
        (folder / "key_file").write_text(content)
    assert [changing.renewed(), changing.renewed()] == [None, None]
    assert len(caplog.records) == 1
    assert "changed TLS files are not used: frontends.http.tls.key_file" in caplog.text
    (folder / "key_file").write_text(key)
    assert changing.renewed() is not None


def test_key_contents_are_never_logged(folder, caplog):
    caplog.set_level(logging.DEBUG)
    secret = (folder / "key_file").read_text().splitlines()[1]
    changing = files(folder)
    changing.context()
    (folder / "key_file").write_text(f"-----BEGIN PRIVATE KEY-----\n{secret}\n")
    assert changing.renewed() is None
    assert caplog.records
    assert secret not in caplog.text + refusal(folder)


def test_contents_are_those_of_the_files(folder):
    assert files(folder).contents() == tuple((folder / name).read_bytes() for name in NAMES)
