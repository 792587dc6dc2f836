"""The parts of FinslerUMAP."""
