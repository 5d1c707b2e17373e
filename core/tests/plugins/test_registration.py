from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonpy.errors import PluginError
from tritonpy.plugins import Registration


def registration(target: type | str) -> Registration:
    return Registration("tritonpy_backends", "toy", target, "tritonpy-toy", "1.0")


def test_a_class_is_itself() -> None:
    assert registration(dict).load() is dict


def test_a_text_is_imported_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazy_toy.py").write_text("class Toy: pass")
    monkeypatch.syspath_prepend(tmp_path)
    lazy = registration("lazy_toy:Toy")
    assert "lazy_toy" not in sys.modules
    assert lazy.load().__name__ == "Toy"
    del sys.modules["lazy_toy"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("import nothing_like_this", "cannot be imported: ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("raise OSError('libfoo.so: not found')", "cannot be imported: OSError: libfoo.so: not found"),
        ("import sys\nsys.no_such_thing", "cannot be imported: AttributeError: module 'sys' has no attribute"),
        ("Other = 1", "names 'broken_toy:Toy', which does not exist"),
    ],
)
def test_a_class_that_cannot_be_imported_is_reported_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    (tmp_path / "broken_toy.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_toy", raising=False)
    with pytest.raises(PluginError) as caught:
        registration("broken_toy:Toy").load()
    assert f"plugin 'toy' of tritonpy-toy {text}" in str(caught.value)
    sys.modules.pop("broken_toy", None)
