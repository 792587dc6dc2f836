"""FinslerTSNE, from data to embedding."""
