"""Calls to an engine in another process, over the frames of `tritonpy_ipc`.

Start at `engine` (the methods and both ends of a call) and `connection` (the socket).
The package may import public names of `tritonpy`, and `tritonpy_ipc`.
"""
