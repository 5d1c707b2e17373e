"""A load generator for servers of the v2 inference protocol, over HTTP and gRPC.

`ClientPool` (client/pool.py) runs the client processes that send a `LoadLevel`; `describe`
(target/description.py) reads what they need to know of the server and the model. It imports the
core's public names only.
"""

from __future__ import annotations
