"""Model configurations: config.pbtxt and its JSON form, their completion, defaults and rules.

Start at `model_text` (reads config.pbtxt) and `validate` (Triton's rules). The library runs without
a server: it imports `tritonpy_types` and `tritonpy_protos` only.
"""
