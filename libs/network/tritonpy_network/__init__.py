"""Listening sockets: connections, TLS files, Unix sockets, and the memory of requests.

Start at `acceptor`, which accepts connections with file descriptors in reserve. The library imports
`tritonpy_types`, `tritonpy_config` and `tritonpy_metrics` only.
"""
