"""The asynchronous clients of OpenAI and of Anthropic, with several calls at a time."""

from __future__ import annotations

import asyncio

import anthropic
import openai

HELLO = [{"role": "user", "content": "Hi"}]


def test_the_async_client_of_openai(live):
    async def run():
        url = f"{live.url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            chats = client.chat.completions
            answers = await asyncio.gather(
                *(chats.create(model="story", messages=HELLO) for _ in range(8))
            )
            stream = await chats.create(model="story", messages=HELLO, stream=True)
            parts = [each.choices[0].delta.content async for each in stream]
            completion = await client.completions.create(model="story", prompt="Once")
            response = await client.responses.create(model="story", input="Hi")
            models = [each.id async for each in client.models.list()]
        return answers, parts, completion, response, models

    answers, parts, completion, response, models = asyncio.run(run())
    assert {each.choices[0].message.content for each in answers} == {"Hello world"}
    assert "".join(part or "" for part in parts) == "Hello world"
    assert completion.choices[0].text == response.output_text == "Hello world"
    assert models == ["story"]


def test_the_async_client_of_anthropic(live):
    async def run():
        async with anthropic.AsyncAnthropic(
            base_url=live.url, api_key="k", max_retries=0
        ) as client:
            messages = client.messages
            answers = await asyncio.gather(
                *(messages.create(model="story", max_tokens=5, messages=HELLO) for _ in range(8))
            )
            async with messages.stream(model="story", max_tokens=5, messages=HELLO) as stream:
                text = "".join([part async for part in stream.text_stream])
        return answers, text

    answers, text = asyncio.run(run())
    assert {each.content[0].text for each in answers} == {"Hello world"}
    assert text == "Hello world"
