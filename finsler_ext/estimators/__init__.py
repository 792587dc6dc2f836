"""The estimators: FinslerUMAP, FinslerTSNE, FinslerMDS and the spectral methods."""
