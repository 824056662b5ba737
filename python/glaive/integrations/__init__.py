"""Ways for other libraries to read tables."""
