"""Calls to an engine in another process, over the frames of `tritonpy_ipc`.

Start at `rpc_engine` (the caller's `Engine`), `rpc_server` and `engine_methods` (the engine's end).
The package may import public names of `tritonpy`, and `tritonpy_ipc`.
"""
