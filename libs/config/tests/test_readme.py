from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent.parent
README = (FOLDER / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    return README.partition(f"```{language}\n")[2].partition("```")[0]


def test_the_example_prints_the_problem_first(capsys):
    exec(block("python"), {"__name__": "example"})  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == block("text").strip()
    assert len(printed) > 1


def test_every_module_is_in_the_table():
    package = FOLDER / "tritonpy_config"
    modules = {path.stem for path in package.iterdir() if path.suffix == ".py" or path.is_dir()}
    modules = {name for name in modules if not name.startswith("_")}
    assert {name for name in modules if f"`{name}`" not in README} == {"fields"}
