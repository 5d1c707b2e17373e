"""Listening sockets: connections, TLS files, Unix sockets, and addresses of several processes.

Start at `acceptor`, which accepts connections with file descriptors in reserve. The library imports
`tritonpy_types` and `tritonpy_config` only.
"""
