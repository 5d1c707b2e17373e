"""A client without sockets, with the interface of tritonclient.

Start at `in_process_client`.
"""

from __future__ import annotations
