from __future__ import annotations

import json

import pytest

from tritonpy_frontend_openai.chat_template import ChatTemplate, TemplateFault, load_template
from tritonpy_frontend_openai.errors import ApiError

HELLO = [{"role": "user", "content": "{{ 7 * 7 }}"}]


def render(text, messages=HELLO, **variables):
    return ChatTemplate(text, {"bos_token": "<s>"}, "here").render(
        messages, None, variables=variables
    )


def test_messages_are_data_and_never_templates():
    assert render("{% for m in messages %}{{ m.content }}{% endfor %}") == "{{ 7 * 7 }}"


def test_the_variables_of_hugging_face_exist():
    text = "{{ bos_token }}{{ add_generation_prompt }}{{ enable_thinking }}{{ strftime_now('%%') }}"
    assert render(text, enable_thinking=False) == "<s>TrueFalse%"
    assert render("{% generation %}a{% endgeneration %}") == "a"
    assert (
        render("{% for m in [1, 2] %}{% if m == 2 %}{% break %}{% endif %}{{ m }}{% endfor %}")
        == "1"
    )
    assert render("{{ messages | tojson(indent=None) }}") == json.dumps(HELLO)
    assert render("{{ '<ü>' | tojson }}") == '"<ü>"'


def test_a_template_may_refuse_messages():
    with pytest.raises(ApiError, match="refused the messages: roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{% for _ in range(10000000) %}{% endfor %}",
        "{{ 1 / 0 }}",
        "{{ undefined.member }}",
        "{{ [] + 1 }}",
    ],
)
def test_a_template_cannot_leave_its_sandbox(text):
    try:
        result = render(text)
    except ApiError:
        return
    assert result == ""


def test_an_invalid_template_names_its_source():
    with pytest.raises(TemplateFault, match="here is invalid"):
        ChatTemplate("{% if %}", {}, "here")


def test_the_template_of_a_file_has_precedence(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": "config {{ bos_token }}", "bos_token": {"content": "<b>"}})
    )
    template = load_template("", tmp_path)
    assert template is not None
    assert template.render([], None) == "config <b>"
    (tmp_path / "chat_template.jinja").write_text("file {{ bos_token }}")
    template = load_template("", tmp_path)
    assert template is not None
    assert template.render([], None) == "file <b>"
    template = load_template("setting {{ bos_token }}", tmp_path)
    assert template is not None
    assert template.render([], None) == "setting <b>"


def test_the_default_of_several_templates_is_used(tmp_path):
    named = [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    template = load_template("", tmp_path)
    assert template is not None
    assert template.render([], None) == "d"


def test_a_model_without_a_template_has_none(tmp_path):
    assert load_template("", tmp_path) is None
    assert load_template("", None) is None


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(TemplateFault, match=r"tokenizer_config\.json"):
        load_template("", tmp_path)
    with pytest.raises(TemplateFault, match=r"nothing\.jinja does not exist"):
        load_template("nothing.jinja", None)
