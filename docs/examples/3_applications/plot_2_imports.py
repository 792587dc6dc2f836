"""
A code base as a landscape
==========================

Which modules of a package depend on which, and which imports go against the flow? One command
answers this for any installed package. In a clone of the repository::

    pip install '.[plot,imports]'
    finsler-ext imports sklearn --without tests --without externals --plot sklearn.html

It prints the imports that lead up and the cycles, and writes a page to explore (``--plot
sklearn.png``: a picture). Here are the same steps in Python. A module lies above what it imports,
as far as there is such an order. Imports that lead up are red; the twenty that rise most are drawn
thicker. Modules with a ring have their name beside them.
"""

import matplotlib.pyplot as plt

from finsler_ext.cli.imports import draw_landscape, fit_imports, read_imports


def draw(name, without=("tests", "testing", "conftest")):
    imports = read_imports(name, without=without)
    landscape = fit_imports(imports)
    _, ax = plt.subplots(figsize=(12, 7), layout="constrained")
    draw_landscape(landscape, ax)
    ax.set_title(f"{name}: {ax.get_title()}")
    plt.show()
    return imports, landscape


imports, landscape = draw("sklearn", without=("tests", "externals"))
print(f"{len(landscape.left_out)} modules without a chain of imports to the others are left out")

# %%
# Cycles are sets of modules that import each other in a circle. No order of them is free of upward
# imports. So red lines are of two kinds: within a cycle one of the imports has to lead up, and
# elsewhere another order would have it lead down. The command marks those of the first kind.

rising = landscape.upward()
print(f"{landscape.in_cycles(rising).sum()} of {len(rising)} upward imports are within a cycle")
for cycle in imports.cycles():
    print(len(cycle), "modules:", ", ".join(cycle[:4]), "..." if len(cycle) > 4 else "")

# %%
# Three more packages: ``pip install django pandas sympy``. In pandas, half of the imports that rise
# most are for type hints: ``pandas._typing`` lies low, because everything imports it, and it
# imports the classes that it names.

imports, _ = draw("pandas")
print(f"the largest cycle has {max(map(len, imports.cycles()))} modules")

# %%

imports, _ = draw("django")
print(f"the largest cycle has {max(map(len, imports.cycles()))} modules")

# %%

imports, _ = draw("sympy")
print(f"the largest cycle has {max(map(len, imports.cycles()))} modules")

# %%
# Our own package, with every import that leads up. None of them is in a cycle: there is an order in
# which every import leads down, but the height, which is an average, is a different order.

own, ours = draw("finsler_ext", without=())
for source, target in ours.upward():
    print(ours.imports.names[source], "->", ours.imports.names[target])
print(f"{ours.in_cycles(ours.upward()).sum()} of these are in cycles")
assert not own.cycles()

# %%
# Against other methods
# ---------------------
#
# Eight packages declare their layers for import-linter. Share of the pairs of modules from
# different layers that the height orders as declared, and by how much it differs from that of other
# orders (``python -m benchmarks.imports``; all packages and intervals in
# ``benchmarks/results/applications.md``):
#
# ===================== =============== ================ ==============
# other order           height is ahead height is behind difference
# ===================== =============== ================ ==============
# SpringRank            on 1 of 8       on 0 of 8        .000 to .001
# Eades-Lin-Smyth       on 5 of 8       on 2 of 8        −.147 to .279
# out- less in-degree   on 7 of 8       on 1 of 8        −.050 to .343
# graphviz dot          on 2 of 7       on 5 of 7        −.074 to .397
# ===================== =============== ================ ==============
#
# So the order is SpringRank's, and graphviz's dot agrees better with the declared layers on five of
# the seven packages that it could draw; it also has fewer crossings on all seven. It needed 21 s
# for one of them and more than a minute for the eighth (napari), which take half a second here.
# The landscape adds a map on which related modules are close, and size: a graph of 10,000 nodes is
# fitted in 2.3 s.
#
# **When this will mislead you.** The height is an average over all imports of a module, not a layer
# that somebody declared. An ``__init__.py`` that collects names is high if few import it and low if
# many do; its imports are then red, and nothing is wrong with them. Two modules of nearly equal
# height may change places when one import is added: read the long red lines, not the short ones.
# Imports within functions and under ``TYPE_CHECKING`` count, although they cannot fail at import.
# Plugins, modules loaded by ``importlib`` and compiled modules are not seen. Heights of parts that
# no import joins do not compare, so only the largest part is drawn. The place across is the rank
# along the longest axis of the map: distances across mean little.
