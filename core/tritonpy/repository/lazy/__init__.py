"""Models that are listed, and loaded when somebody asks for them."""
