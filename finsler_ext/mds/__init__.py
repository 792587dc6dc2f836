"""FinslerMDS, from distances to embedding."""
