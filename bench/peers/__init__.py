"""tritonpy beside other Python inference servers; `__main__` is the program.

Each `serve_NAME.py` serves the same ONNX model with one of them. It runs in an environment of its
own and imports nothing of the project. Arguments: the model's file, then the port.
"""
