"""Serves models with OpenVINO: the backend `openvino` of tritonpy."""
