"""Triton's in-process Python API: an inference server inside a program.

Programs import the modules `tritonserver` and `tritonfrontend`, which have the names of NVIDIA's
own packages and get their contents from here. Start at `server`; `model` sends requests, `response`
returns their responses, `tensor` exchanges data by DLPack, `frontends` opens ports.
"""
