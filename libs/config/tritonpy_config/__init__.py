"""Configurations as checked data: config.pbtxt, server.yaml and the options of plugins.

Start at `model_text` (reads config.pbtxt), `validate` (Triton's rules) and `server` (server.yaml).
The library runs without a server: it imports `tritonpy_types` and `tritonpy_protos` only.
"""
