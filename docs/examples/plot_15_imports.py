"""
A code base as a landscape
==========================

Which modules of a package rest on which, and which imports go against the flow? The answer for a
package that you have installed is one command::

    pip install 'finsler_ext[plot,imports]'
    finsler-ext imports sklearn --without tests --plot sklearn.png --plot sklearn.html

Here are the same steps in Python. A module that imports many and is imported by few lies high.
Imports that lead up are red.
"""

import matplotlib.pyplot as plt

from finsler_ext.cli.imports import draw_landscape, fit_imports, read_imports

imports = read_imports("sklearn", without=["tests", "externals"])
landscape = fit_imports(imports)
print(f"{len(landscape.left_out)} modules without a chain of imports to the others are left out")

figure, ax = plt.subplots(figsize=(12, 7), layout="constrained")
draw_landscape(landscape, ax)
ax.set_title(f"scikit-learn: {ax.get_title()}")
plt.show()

# %%
# Cycles are sets of modules that import each other in a circle. No order of them is free of
# upward imports.

for cycle in imports.cycles():
    print(len(cycle), "modules:", ", ".join(cycle[:4]), "..." if len(cycle) > 4 else "")

# %%
# Our own package, with every import that leads up.

own = read_imports("finsler_ext")
ours = fit_imports(own)
figure, ax = plt.subplots(figsize=(12, 7), layout="constrained")
draw_landscape(ours, ax)
ax.set_title(f"finsler_ext: {ax.get_title()}")
for source, target in ours.upward():
    print(ours.imports.names[source], "->", ours.imports.names[target])
for cycle in own.cycles():
    print("cycle:", ", ".join(cycle))
plt.show()

# %%
# When this will mislead you
# --------------------------
#
# The height is an average over all imports of a module, and no layer that somebody declared. An
# ``__init__.py`` that collects names is high if few import it and low if many do; its imports are
# then red, and nothing is wrong with them. Two modules of nearly equal height may change places
# when one import is added: read the long red lines and not the short ones. Imports within functions
# and under ``TYPE_CHECKING`` count, although they cannot fail at import. What is imported by name
# at run time (plugins, ``importlib``) and compiled modules are not seen. Heights of parts that no
# import joins do not compare, so only the largest part is drawn. The place across is the rank along
# the longest axis of the map: distances across mean little.
