"""Model repositories in S3, Google Cloud Storage, Azure and whatever fsspec reads, for tritonpy."""
