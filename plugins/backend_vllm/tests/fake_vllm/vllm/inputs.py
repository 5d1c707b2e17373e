"""Prompts."""

from __future__ import annotations


class TokensPrompt(dict):
    """Token IDs."""
