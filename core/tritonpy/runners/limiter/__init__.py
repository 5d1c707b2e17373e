"""The rate limiter: resources that instances need while they execute, and the order of grants."""
