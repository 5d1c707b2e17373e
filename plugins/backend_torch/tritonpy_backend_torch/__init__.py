"""Serves PyTorch models: the backend `pytorch` of tritonpy."""
