"""What runs a model's instances."""
