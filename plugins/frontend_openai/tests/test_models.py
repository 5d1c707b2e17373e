from __future__ import annotations

import json

import openai
import pytest

from tritonpy import Unavailable
from tritonpy.config import InvalidServerConfig

from .conftest import TEMPLATE
from .scripted_engine import VLLM


def test_models_that_generate_text_are_listed(live, engine):
    models = list(live.client.models.list())
    assert [each.id for each in models] == ["story"]
    assert models[0].owned_by == "Triton Inference Server"
    assert live.client.models.retrieve("story").id == "story"


def test_an_unknown_model_is_not_found(live):
    with pytest.raises(openai.NotFoundError, match="Unknown model: nothing"):
        live.client.models.retrieve("nothing")
    reply = live.chat(model="nothing")
    assert (reply.status, reply.error["code"], reply.error["param"]) == (
        404,
        "model_not_found",
        "model",
    )


def test_a_model_without_text_is_refused(live):
    reply = live.chat(model="other")
    assert reply.status == 400
    assert "text_input" in reply.error["message"]


def test_an_alias_is_a_name_of_the_model(start, engine):
    live = start(models={"story": {"aliases": ["gpt-4o"], "chat_template": TEMPLATE}})
    done = live.chat(model="gpt-4o").json
    assert done["model"] == "gpt-4o"
    assert engine.calls[0].request.model_name == "story"
    assert [each["id"] for each in live.call("GET", "/v1/models").json["data"]] == [
        "story",
        "gpt-4o",
    ]


def test_the_same_alias_of_two_models_is_an_error(start):
    with pytest.raises(InvalidServerConfig, match="same alias 'x'"):
        start(models={"a": {"aliases": ["x"]}, "b": {"aliases": ["x"]}})


def test_adapters_are_models(start, engine, tmp_path):
    (tmp_path / "multi_lora.json").write_text(json.dumps({"cats": "./cats"}))
    engine.add("story", VLLM, str(tmp_path))
    live = start(lora_separator=":")
    assert [each["id"] for each in live.call("GET", "/v1/models").json["data"]] == [
        "story",
        "story:cats",
    ]
    assert live.complete(model="story:cats").status == 200
    assert engine.calls[0].sampling["lora_name"] == "cats"
    assert live.complete(model="story:dogs").error["message"] == (
        "Unknown LoRA: dogs; for model: story:dogs"
    )


def test_settings_may_be_parameters_of_the_configuration(start, engine):
    engine.add(
        "story",
        VLLM + 'parameters { key: "openai.chat_template" value { string_value: "{{ 1 + 1 }}" } }'
        'parameters { key: "openai.default_max_tokens" value { string_value: "5" } }',
    )
    start(models={}).chat()
    assert (engine.calls[0].prompt, engine.calls[0].sampling["max_tokens"]) == ("2", 5)
    start(models={"story": {"chat_template": "{{ 3 }}"}}).chat()
    assert (engine.calls[1].prompt, engine.calls[1].sampling["max_tokens"]) == ("3", 5)


@pytest.mark.parametrize("name", ["tokenizer", "chat_template"])
def test_paths_of_the_configuration_stay_in_the_folder(start, engine, tmp_path, caplog, name):
    secret, own = tmp_path / "secret", tmp_path / "own"
    for folder in (secret, own):
        folder.mkdir()
        (folder / "chat_template.jinja").write_text(folder.name)
    path = "secret" if name == "tokenizer" else "secret/chat_template.jinja"
    parameter = f'parameters {{ key: "openai.{name}" value {{ string_value: "../{path}" }} }}'
    engine.add("story", VLLM + parameter, str(own))
    live = start(models={})
    live.chat()
    assert engine.calls[0].prompt == "own"
    assert "is outside the model's folder" in caplog.text
    absolute = parameter.replace(f"../{path}", str(tmp_path / path))
    engine.add("story", VLLM + absolute, str(own))
    live.chat()
    assert [each.prompt for each in engine.calls[1:]] in ([], ["own"])


def test_an_invalid_parameter_of_the_configuration_is_logged(start, engine, caplog):
    engine.add(
        "story",
        VLLM + 'parameters { key: "openai.tool_parser" value { string_value: "nothing" } }'
        'parameters { key: "openai.tokeniser" value { string_value: "x" } }',
    )
    assert start().chat().status == 200
    assert "openai.tokeniser" in caplog.text
    assert "tool_parser" in caplog.text


def test_a_reloaded_model_has_its_new_template(start, engine, tmp_path):
    (tmp_path / "chat_template.jinja").write_text("old")
    engine.add("story", VLLM, str(tmp_path))
    live = start(models={})
    live.chat()
    (tmp_path / "chat_template.jinja").write_text("new")
    engine.add("story", VLLM, str(tmp_path))
    live.chat()
    assert [each.prompt for each in engine.calls] == ["old", "new"]


def test_a_model_that_is_loaded_late_has_its_template(start, engine, tmp_path):
    (tmp_path / "chat_template.jinja").write_text("late")
    engine.add("story", VLLM, str(tmp_path))
    live, model_folder = start(models={}), engine.model_folder

    def not_loaded(name, version=-1):
        raise Unavailable("the model is not loaded")

    engine.model_folder = not_loaded
    assert live.chat().status == 400
    engine.model_folder = model_folder
    assert live.chat().status == 200
    assert engine.calls[0].prompt == "late"


def test_a_model_without_a_template_says_where_to_put_one(start, engine):
    reply = start(models={}).chat()
    assert reply.status == 400
    assert "chat_template.jinja" in reply.error["message"]
    assert engine.calls == []


def test_models_are_loaded_and_unloaded(live, engine):
    assert live.call("POST", "/v1/models/story/unload").json == {
        "status": "success",
        "model": "story",
    }
    assert live.chat().status == 404
    assert live.call("POST", "/v1/models/story/load").json["id"] == "story"
    assert live.chat().status == 200
    assert live.call("POST", "/v1/models/story/load").error["message"] == (
        "Model 'story' is already loaded"
    )
    assert live.call("POST", "/v1/models/nothing/unload").error["message"] == (
        "Unknown model: nothing"
    )
    failed = live.call("POST", "/v1/models/nothing/load")
    assert failed.error["message"].startswith("Failed to load model 'nothing': ")


def test_the_control_of_models_can_be_disabled(start, engine):
    reply = start(model_control=False).call("POST", "/v1/models/story/unload")
    assert reply.status == 400
    assert engine.loads == []
