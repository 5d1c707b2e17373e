"""The example of the README works, and its tables name every option."""

from __future__ import annotations

import http.client
import json
import re
import shlex
from contextlib import closing
from pathlib import Path

import yaml

from tritonpy.frontend import HttpConnectionOptions
from tritonpy_frontend_openai.options import ModelOptions, OpenAiOptions
from tritonpy_testing import running_server

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_example_chats(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "models" / "echo" / "1"
    folder.mkdir(parents=True)
    (folder / "model.py").write_text(PYTHON[0])
    (folder.parent / "config.pbtxt").write_text('backend: "python"')
    [text] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    config = yaml.safe_load(text)
    config["frontends"]["openai"]["port"] = 0
    config["frontends"] |= {"http": False, "grpc": False, "metrics": False}
    curl = next(shlex.split(line) for line in README.splitlines() if line.startswith("    curl "))
    with running_server(config) as server:
        address = server.address("openai")
        with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
            connection.request("POST", "/" + curl[1].partition("/")[2], curl[3])
            answer = json.loads(connection.getresponse().read())
        assert answer["choices"][0]["message"]["content"] == "How are you "
        for program, printed in ((PYTHON[1], "How are you "), (PYTHON[2], "Hello \nHello \n")):
            code = compile(program.replace("localhost:9000", address), "README.md", "exec")
            exec(code, {})  # noqa: S102
            assert capsys.readouterr().out == printed


def test_every_option_is_in_a_table():
    own = set(OpenAiOptions.__struct_fields__) - set(HttpConnectionOptions.__struct_fields__)
    for name in own | set(ModelOptions.__struct_fields__):
        assert re.search(rf"^\|[^|]*`{name}`", README, re.MULTILINE), name
