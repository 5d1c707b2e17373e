"""Anthropic's Messages API for the same models. Start at `call`.

Source: the API reference of Anthropic for messages, their streams, and counting tokens.
"""

from __future__ import annotations
