"""The back rooms of FinslerUMAP: what its methods do, one room each."""
