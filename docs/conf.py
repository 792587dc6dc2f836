"""Documentation of finsler_ext: ``python -m sphinx -W -b html docs docs/_build/html``."""

from importlib.metadata import version as installed_version

import matplotlib

matplotlib.use("Agg")

project = "finsler_ext"
author = "finsler_ext contributors"
copyright = "finsler_ext contributors, BSD-3-Clause"
version = release = installed_version("finsler_ext")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples"]
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "substitution"]
myst_substitutions = {"version": version}
myst_heading_anchors = 3
nitpicky = False

# API reference
autosummary_generate = True
autodoc_inherit_docstrings = False  # umap-learn's and openTSNE's are on their own pages
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery: every example is run by the build
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "plot_gallery": True,
    "capture_repr": (),  # no <Axes: ...> at the end of a page
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = "finsler_ext"
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# pages without pages below them need no list of those
ALONE = ("index", "install", "tutorial", "height", "method", "faq", "cite", "changelog")
html_sidebars: dict[str, list] = {page: [] for page in (*ALONE, "checklist")}
linkcheck_ignore = [r"https://doi\.org/.*"]
