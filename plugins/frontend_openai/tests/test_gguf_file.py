from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonpy_frontend_openai.chat_template import TemplateFault, load_template
from tritonpy_frontend_openai.gguf_file import GgufFault, read_gguf_metadata

TEMPLATE = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def array(kind, *values):
    return struct.pack("<IQ", kind, len(values)) + b"".join(values)


def gguf(*entries, version=3):
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries)


ENTRIES = (
    entry("general.architecture", 8, text("llama")),
    entry("some.numbers", 9, array(6, *[struct.pack("<f", 1.5)] * 3)),
    entry("some.texts", 9, array(8, text("a"), text("bc"))),
    entry("tokenizer.ggml.tokens", 9, array(8, text("<u>"), text("<s>"), text("</s>"))),
    entry("tokenizer.ggml.bos_token_id", 4, struct.pack("<I", 1)),
    entry("tokenizer.ggml.eos_token_id", 4, struct.pack("<I", 2)),
    entry("tokenizer.chat_template", 8, text(TEMPLATE)),
    entry("general.ratio", 12, struct.pack("<d", 0.25)),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf"


def test_numbers_texts_and_the_vocabulary_are_read(path):
    path.write_bytes(gguf(*ENTRIES))
    assert read_gguf_metadata(path) == {
        "general.architecture": "llama",
        "tokenizer.ggml.tokens": ["<u>", "<s>", "</s>"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": TEMPLATE,
        "general.ratio": 0.25,
    }


def test_the_template_of_a_file_knows_its_special_tokens(path):
    path.write_bytes(gguf(*ENTRIES))
    template = load_template("", path.parent)
    assert template.render([{"role": "user", "content": "Hi"}], None) == "<s>Hi</s>"


def test_a_file_without_a_template_has_none(path):
    path.write_bytes(gguf(ENTRIES[0]))
    assert load_template("", path.parent) is None
    assert load_template("", path.parent / "missing") is None


def test_other_tokenizer_files_have_precedence(path):
    path.write_bytes(gguf(*ENTRIES))
    (path.parent / "chat_template.jinja").write_text("other")
    assert load_template("", path.parent).render([], None) == "other"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "too short"),
        (b"PK\3\4 something", "no GGUF file"),
        (gguf(version=1), "version 1 of GGUF is not supported"),
        (gguf(*ENTRIES)[:-20], "damaged"),
        (gguf(entry("a", 77, b"")), "unknown type: 77"),
        (gguf(entry("a", 9, array(9))), "array of an unknown type: 9"),
        (gguf(entry("a", 9, struct.pack("<IQ", 8, 2**40))), "claims to have"),
        (gguf(entry("a", 8, struct.pack("<Q", 2**60))), "damaged"),
    ],
)
def test_a_damaged_file_is_reported(path, data, message):
    path.write_bytes(data)
    with pytest.raises(GgufFault, match=message):
        read_gguf_metadata(path)
    with pytest.raises(TemplateFault, match=r"cannot read .*model.gguf"):
        load_template("", path.parent)


@given(st.data())
def test_random_damage_never_hangs_or_leaks_another_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    whole = bytearray(gguf(*ENTRIES))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    with contextlib.suppress(GgufFault):
        read_gguf_metadata(path)
