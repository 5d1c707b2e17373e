from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from tritonpy.repository import builtin
from tritonpy.server.factories import open_repositories
from tritonpy_config.server import decode_server_config
from tritonpy_repo_cloud.credentials import FILE_VARIABLE, VARIABLES, credential_for
from tritonpy_repo_cloud.options import CloudOptions

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    return found


def test_the_example_of_a_server_opens(tmp_path, monkeypatch):
    import tritonpy_repo_cloud
    from tritonpy.plugins import make_plugin_manager

    manager = make_plugin_manager(discover=False)
    manager.register(builtin, "core")
    manager.register(tritonpy_repo_cloud, "clouds")
    raw = yaml.safe_load(block("yaml").replace("/var/cache", str(tmp_path)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    repositories = open_repositories(decode_server_config(raw), manager)
    assert [each.context.url for each in repositories] == [
        each["url"] for each in raw["repositories"]
    ]
    assert repositories[1].options.complete_when == "marker"
    assert repositories[1].options.cache_size == 200 * 2**30
    for each in repositories:
        each.close()


def test_every_option_is_in_the_table_with_its_default():
    options = CloudOptions()
    rows = dict(re.findall(r"^\| (`[a-z_, `]+`) \|([^|]*)\|", TEXT, re.MULTILINE))
    documented = {
        name: default.strip()
        for names, default in rows.items()
        for name in re.findall(r"`(\w+)`", names)
    }
    assert {field.name for field in msgspec.structs.fields(CloudOptions)} == set(documented)
    assert documented["settle_s"] == f"{options.settle_s:g}, {options.completion_timeout_s:g}"
    assert (
        documented["connect_timeout_s"]
        == f"{options.connect_timeout_s:g}, {options.read_timeout_s:g}"
    )
    assert documented["cache_size"] == f"{options.cache_size >> 30} GiB"
    for name in ("complete_when", "marker", "parallel", "attempts"):
        assert documented[name].strip("`") == str(getattr(options, name))
    assert documented["longest_pause_s"] == f"{options.longest_pause_s:g}"


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("s3://other/m", {"profile"}),
        ("s3://bucket/m", {"key_id", "secret_key", "session_token", "region"}),
        ("gs://bucket/m", {"path"}),
        ("as://account/c", {"account_str", "account_key"}),
        ("as://other/c", {"auth_type", "client_id"}),
    ],
)
def test_the_example_of_a_credential_file_is_one(tmp_path, url, fields):
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(json.loads(block("json"))))
    assert set(credential_for(url[:2], url, {FILE_VARIABLE: str(file)})) == fields


def test_every_variable_is_named():
    for variables in VARIABLES.values():
        assert [name for name in variables.values() if f"`{name}`" not in TEXT] == []
