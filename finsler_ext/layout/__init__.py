"""Stages 2 and 3: initial positions and the optimisers, one file each."""
