from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def test_the_example_completes_a_configuration(capsys):
    example = README.partition("```python\n")[2].partition("```")[0]
    exec(example, {"__name__": "example"})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "['IN'] [[4]] 8\n"


def test_every_module_is_in_the_table():
    modules = {path.stem for path in (FOLDER / "tritonpy_backend_kit").glob("[a-z]*.py")}
    assert {name for name in modules if f"| `{name}`" not in README} == set()
