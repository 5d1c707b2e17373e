"""Model repositories: finding, loading, reloading and unloading models, and their states."""
