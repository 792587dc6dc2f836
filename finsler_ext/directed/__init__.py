"""Directed data: every container, digraphs, and whether anything depends on the direction."""
