"""Content-addressed model cache on the local disk: blobs, their sources, leases and size limit.

Start at `model_cache`.
"""
