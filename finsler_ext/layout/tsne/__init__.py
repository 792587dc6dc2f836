"""t-SNE's layout: exact, tree and grid gradients, descent, schedule."""
