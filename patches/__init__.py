"""Contributions that umap-learn, openTSNE and scikit-learn can merge.

One folder per upstream release, numbered patches with the text of their pull
request beside them, and ``python -m patches check`` to prove them.
"""
