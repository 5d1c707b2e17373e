"""The rate limiter: named resources that instances need while they execute, and whose turn it is."""
