"""Triton's HTTP protocol for frontends: inference, `generate` and the management routes.

Start at `frontend`, then `protocol` (inference) and `routes` (everything else). `dialect` is for
frontends with other paths and headers. It imports public names of the core and `tritonpy_http1`.
"""
