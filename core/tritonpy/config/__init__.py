"""Model configurations: parsing, completion, normalization, validation and output."""
