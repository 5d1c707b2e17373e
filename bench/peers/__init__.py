"""tritonpy beside other Python inference servers; `__main__` is the program.

Each `serve_NAME.py` serves the model of `add_sub.py` with one of them. It runs in an environment of
its own and imports only that file. Arguments: the model's file, then the port.
"""
