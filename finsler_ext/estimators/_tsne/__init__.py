"""The parts of FinslerTSNE."""
