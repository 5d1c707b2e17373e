"""What a client is told that Envoy refuses by itself, by the status of the answer; the log says the same."""

from __future__ import annotations

# Those of frontend_http, where it refuses the same.
TEXTS = {
    400: "Invalid HTTP request received.",
    404: "Not Found",
    408: "The request took too long to arrive",
    431: "The head of the request is too large, or has too many headers",
}
