"""UMAP's layout: forces, descent, schedule, loss, placement of new points."""
