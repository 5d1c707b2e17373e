"""Lazy models: listed at the start, and loaded by their first request."""
