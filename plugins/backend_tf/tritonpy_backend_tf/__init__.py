"""Serves TensorFlow and Keras models: the backend `tensorflow` of tritonpy."""
