"""Documentation of finsler_ext: ``python -m sphinx -W -b html docs docs/_build/html``.

While writing, ``-D plot_gallery=0`` without ``-W`` leaves the examples out; those that did not
change are not run again in any case.
"""

import inspect
import re
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path

import matplotlib
import numpy as np
from numpydoc.docscrape import NumpyDocString
from PIL import Image, ImageOps

matplotlib.use("Agg")

project = "finsler_ext"
author = "finsler_ext contributors"
copyright = "finsler_ext contributors, BSD-3-Clause"
package = metadata("finsler_ext")
version = release = package["Version"]

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
myst_heading_anchors = 3
nitpicky = False
default_role = "py:obj"  # names in single backticks are links
toc_object_entries_show_parents = "hide"

# API reference
autosummary_generate = True
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
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
html_title = f"finsler_ext {version}"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_prev_next": False,
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    # not in the gallery: beside code and pictures there is no room for it
    "secondary_sidebar_items": {page: ["page-toc"] for page in ("*", "guide/*", "api/*")},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# a release writes the addresses of the source into pyproject.toml
addresses = dict(entry.split(", ", 1) for entry in package.get_all("Project-URL", []))
about = [f"Version {version}", package["License-Expression"], "[changelog](changelog.md)"]
if "Source" in addresses:
    html_theme_options["github_url"] = addresses["Source"]
    about.insert(1, f"[source]({addresses['Source']})")
myst_substitutions = {"about": " · ".join(about)}
# pages without pages below them need no list of those
ALONE = (
    "index",
    "install",
    "tutorial",
    "height",
    "evidence",
    "complaints",
    "method",
    "faq",
    "cite",
)
html_sidebars: dict[str, list] = {page: [] for page in (*ALONE, "changelog", "checklist")}
linkcheck_ignore = [r"https://doi\.org/.*"]

# Parents whose parameters an estimator inherits, and their pages.
PARENTS = {
    "finsler_ext.FinslerUMAP": ("umap", "UMAP", "umap-learn"),
    "finsler_ext.FinslerTSNE": ("openTSNE", "TSNE", "openTSNE"),
}
MOST_SHOWN = 6  # parameters in the heading of a class
INDEXED = r"`[^`]+`|(?<![^\s(])([A-Za-z](?:_[a-z]{1,2}|\^m))(?=[\s,.;:)]|$)"
SYMBOLS = {
    "Σ": r"\sum", "‖": r"\|", "ω": r"\omega", "ν": r"\nu", "·": r"\cdot", "≠": r"\ne ",
    "−": "-", "²": "^2", "ln": r"\ln",
}  # fmt: skip


THUMBNAIL = (400, 280)  # sphinx-gallery's
TWO_PANELS = 1.95  # pictures that are so much wider than high have a panel on the left and right


def setup(app) -> None:
    app.connect("builder-inited", crop_thumbnails, priority=900)  # after sphinx-gallery
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-process-docstring", complete_docstring, priority=400)  # before numpydoc


def crop_thumbnails(app) -> None:
    """Of a wide picture the right panel: both would be too small to recognise."""
    for path in Path(app.srcdir, "gallery").glob("*/images/sphx_glr_*_001.png"):
        picture = Image.open(path).convert("RGB")
        if picture.width < TWO_PANELS * picture.height:
            continue
        empty = np.flatnonzero((np.asarray(picture) > 250).all(axis=(0, 2)))
        left = int(empty[np.abs(empty - picture.width / 2).argmin()])
        panel = picture.crop((left, 0, picture.width, picture.height))
        thumb = ImageOps.pad(panel, THUMBNAIL, color="white")
        thumb.save(path.parent / "thumb" / path.name.replace("_001.png", "_thumb.png"))


def shorten_signature(app, what, name, obj, options, signature, returns):
    """The first parameters of a class with many: all of them are listed below it."""
    if what != "class" or signature is None:
        return None
    parameters = list(inspect.signature(obj).parameters.values())
    if len(parameters) <= 2 * MOST_SHOWN:
        return None
    return f"({', '.join(map(str, parameters[:MOST_SHOWN]))}, ...)", returns


def complete_docstring(app, what, name, obj, options, lines) -> None:
    """Formulas typeset, fields of tuples as a list, and the parameters that a class inherits."""
    if what == "class" and "----------" not in lines:
        lines[:] = [re.sub(r"^(\w+) : ", r"* ``\1``: ", line) for line in lines]
    lines[:] = typeset(lines)
    if name in PARENTS:
        lines += ["", *inherited(obj, *PARENTS[name])]


def typeset(lines: list[str]) -> list[str]:
    """Formulas, which are indented at the head of a docstring, as mathematics."""
    out: list[str] = []
    head = True
    for line in lines:
        head = head and not re.fullmatch(r"-{3,}", line)
        if head and line.startswith("    ") and "=" in line:
            if out[-1].startswith("   "):
                out[-1] += r" \\"
            else:
                out += [".. math::", ""]
            each = [latex(part).replace("=", "&=", 1) for part in re.split(" {2,}", line.strip())]
            out.append("   " + r" \\ ".join(each))  # an equation has a line
        else:
            out.append(re.sub(INDEXED, inline, line) if head else line)
    for k, line in enumerate(out):
        if line.startswith("   ") and r"\\" not in out[k - 1] + line:
            out[k] = line.replace("&=", "=")  # one equation is not aligned
    return out


def inline(found: re.Match) -> str:
    """A letter with an index, such as p_ij, as mathematics; what stands in backticks is code."""
    return found[0] if found[1] is None else f":math:`{latex(found[1])}`"


def latex(formula: str) -> str:
    """The letters of a formula in a docstring as LaTeX."""
    formula = re.sub(r"([A-Za-z])_([a-z]{2})", r"\1_{\2}", formula.strip())
    return re.sub("|".join(SYMBOLS), lambda found: SYMBOLS[found[0]] + " ", formula)


def inherited(obj, module: str, parent: str, package: str) -> list[str]:
    """A section with the parameters that only the parent describes."""
    own = NumpyDocString(inspect.getdoc(obj))
    known = {part.strip() for entry in own["Parameters"] for part in entry.name.split(",")}
    told = {}
    for entry in NumpyDocString(inspect.getdoc(getattr(import_module(module), parent)))[
        "Parameters"
    ]:
        parameter, _, kind = entry.name.partition(":")
        told[parameter.strip()] = kind.strip(), entry.desc
    lines = ["Other Parameters", "----------------"]
    for parameter, default in inspect.signature(obj).parameters.items():
        if parameter in known:
            continue
        text = told.get(parameter, ("", []))[1] or [f"See {package}."]
        lines.append(f"{parameter} : default={default.default!r}")
        lines += [f"    {line}".rstrip() for line in text]
    return lines
