"""Serves transformers with CTranslate2, tokens as they come: the backend `transformer` of tritonpy."""
