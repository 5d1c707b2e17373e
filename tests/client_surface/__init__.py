"""One check for each public method of tritonclient's clients.

`tests/test_client_surface.py` runs the checks for each kind of client.
"""
