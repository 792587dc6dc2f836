"""FinslerUMAP, from data to embedding."""
