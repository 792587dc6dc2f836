"""The stress of MDS: objective, majorisation, descent, drift, placement."""
