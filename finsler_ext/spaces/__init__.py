"""Geometries that an embedding can have."""
