"""The rules of `tritonpy lint`, one module per subject. They import `tritonpy_checks` only.

Start at `server_rule`: the base of rules for what the server itself rejects.
"""
