"""OpenAI's Responses API: conversations whose responses the server can keep. Start at `call`.

Source: the API reference of OpenAI for responses and their streams.
"""

from __future__ import annotations
