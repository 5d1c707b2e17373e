"""One check for each public method of tritonclient's clients; `tests/test_client_surface.py` runs them for each kind of client."""
