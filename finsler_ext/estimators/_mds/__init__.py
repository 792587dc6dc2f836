"""The parts of FinslerMDS."""
