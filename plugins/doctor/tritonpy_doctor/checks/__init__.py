"""The checks of `tritonpy doctor`: `installation`, `machine` and `server`.

They read only, and import `tritonpy_checks` and public names of the core.
"""
