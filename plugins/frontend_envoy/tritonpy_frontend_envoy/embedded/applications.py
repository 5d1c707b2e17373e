"""What pyvoy imports inside Envoy: the application of each listener, by its name. The import makes this process the server's."""

from __future__ import annotations

from tritonpy_frontend_envoy.embedded.host import take_over
from tritonpy_frontend_envoy.embedded.switch import BothSwitch, Switch

_host = take_over()
http = Switch(_host.applications, "http")
grpc = Switch(_host.applications, "grpc")
both = BothSwitch(http, grpc)
