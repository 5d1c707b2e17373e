"""The memory budget: limits on the memory of all models, and eviction of idle ones."""
