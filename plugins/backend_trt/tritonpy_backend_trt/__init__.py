"""Serves TensorRT engines: the backend `tensorrt` of tritonpy."""
