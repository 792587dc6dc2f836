"""Dots for any number of points: marks one by one, or one image where they are too many."""

from __future__ import annotations

import numpy as np

from finsler_ext.plot.inputs import Colors

# More points than this are drawn as an image, and not one by one.
MANY = 100_000
# Total area of all marks, in square points: they still show as single dots.
INK = 20_000.0
# Values beyond these shares get the last colour, so that outliers do not use up the others.
TAILS = (0.01, 0.99)
# A legend has at most this many entries, each of at most this many letters.
MOST_KEYS, MOST_LETTERS, KEYS_PER_COLUMN = 40, 24, 20
CONTINUOUS = "viridis"
NO_VALUE = "#bbbbbb"
# Opacity of dots whose height is not sure.
PALE = 0.25
# Distinct for colour-blind eyes (after Okabe and Ito) and of varied lightness, for grey prints.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#56B4E9", "#D55E00", "#CC79A7", "#7F3C8D", "#000000",
          "#7A5C00", "#999999")  # fmt: skip
MARKS = "os^Dv"


def new_axes(ax, colors: Colors | None = None, projection=None):
    """The Axes given, or those of a new figure, which is wide enough for its legend."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    width = 6.4
    if colors is not None and colors.names:
        columns = -(-min(len(colors.names), MOST_KEYS) // KEYS_PER_COLUMN)
        letters = min(MOST_LETTERS, max(len(name) for name in [*colors.names, colors.title]))
        width = 5.6 + columns * (0.35 + 0.095 * letters)
        if projection is not None:
            width += 0.5  # the axis of the height stands between dots and legend
    keywords = {} if projection is None else {"projection": projection}
    _, ax = plt.subplots(figsize=(width, 5.2), layout="constrained", subplot_kw=keywords)
    return ax


def limits(values) -> tuple[float, float]:
    """The range of the colours: all but the outermost values."""
    known = values[np.isfinite(values)]
    if known.size == 0:
        return 0.0, 1.0
    low, high = np.quantile(known, TAILS)
    return (low, high) if high > low else (known.min(), known.max())


def color_scale(values):
    """Colours of values: matplotlib's ScalarMappable; what has no value is grey."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    cmap = colormaps[CONTINUOUS].with_extremes(bad=NO_VALUE)
    return ScalarMappable(Normalize(*limits(values)), cmap)


def marker_size(n: int) -> float:
    return min(20.0, max(1.0, INK / n))


def palette(n: int) -> list[str]:
    """n colours; everyone can tell the first ten apart, more come from a rainbow."""
    if n <= len(COLORS):
        return list(COLORS[:n])
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    # neighbours in the legend lie far apart in the rainbow
    step = next(s for s in range(int(0.38 * n) + 1, 2 * n) if np.gcd(s, n) == 1)
    places = [0.04 + 0.92 * ((c * step) % n) / n for c in range(n)]
    return [to_hex(color) for color in colormaps["turbo"](places)]


def draw_dots(ax, x, y, colors: Colors):
    """Dots with a legend or a colour bar, outside the axes."""
    look: dict = {"s": marker_size(len(x)), "linewidths": 0, "zorder": 2}
    if colors.names is None:
        scale = color_scale(colors.values)
        if len(x) > MANY:
            _draw_image(ax, *mean_image(x, y, colors.values, scale))
        else:
            look |= {"cmap": scale.cmap, "norm": scale.norm, "plotnonfinite": True}
            alpha = None if colors.pale is None else np.where(colors.pale, PALE, 1.0)
            ax.scatter(x, y, c=colors.values, alpha=alpha, **look)
        draw_bar(ax, scale, colors)
        return
    shades = palette(len(colors.names))
    if len(x) > MANY:
        _draw_image(ax, *name_image(x, y, colors.values, shades))
    else:
        for code, shade in enumerate(shades):
            here, mark = colors.values == code, MARKS[code % len(MARKS)]
            ax.scatter(x[here], y[here], color=shade, marker=mark, **look)
    draw_legend(ax, colors)


def _draw_image(ax, image, extent):
    look = {"origin": "lower", "interpolation": "nearest", "aspect": "auto", "zorder": 2}
    ax.imshow(image, extent=extent, **look)


def draw_bar(ax, scale, colors: Colors, **keywords):
    known = colors.values[np.isfinite(colors.values)]
    beyond = ((known < scale.norm.vmin).any(), (known > scale.norm.vmax).any())
    extend = {(1, 1): "both", (1, 0): "min", (0, 1): "max", (0, 0): "neither"}[beyond]
    keywords = {"shrink": 0.85, "extend": extend, "label": colors.title} | keywords
    return ax.figure.colorbar(scale, ax=ax, **keywords)


def draw_legend(ax, colors: Colors, on_the_left: bool = False, marks: bool = True):
    """Names of the categories beside the axes, the most frequent ones if they are many."""
    from matplotlib.lines import Line2D

    names = colors.names or []
    colours = palette(len(names))
    size = np.bincount(colors.values, minlength=len(names))
    listed = np.sort(np.argsort(-size, kind="stable")[:MOST_KEYS])
    shapes = MARKS if marks else "o"
    keys = [
        Line2D([], [], ls="", marker=shape, color=colours[code], label=short(names[code]))
        for code, shape in ((code, shapes[code % len(shapes)]) for code in listed)
    ]
    left_out = len(names) - len(listed)
    if left_out:
        keys.append(Line2D([], [], ls="", label=f"and {left_out} more"))
    ax.legend(
        handles=keys,
        title=short(colors.title) or None,
        loc="center right" if on_the_left else "center left",
        bbox_to_anchor=(0.0 if on_the_left else 1.0, 0.5),
        frameon=False,
        ncols=-(-len(keys) // KEYS_PER_COLUMN),
        handletextpad=0.1,
    )


def short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"


# Images of very many points, made by datashader (extra ``large``): colours mixed in each pixel.

# Longer side of the image; that of a default figure has about as many pixels.
PIXELS = 640
# Least opacity, of 255, of a pixel that has a point in it; crowded pixels are more opaque.
FAINTEST = 90
# Steps in which datashader gets a colour map; it interpolates between them.
STEPS = 256


def mean_image(x, y, values, scale):
    """RGBA image in the colours of the mean values, and its extent.

    ``scale`` is matplotlib's ScalarMappable. Points without a value count
    where no other is, in the colour that the map has for them.
    """
    ds, shade = _datashader()
    from matplotlib.colors import to_hex

    known = np.isfinite(values)
    canvas, extent = _canvas(ds, x, y)
    count = canvas.points(_frame(x, y), "x", "y", ds.count())
    mean = canvas.points(_frame(x[known], y[known], values[known]), "x", "y", ds.mean("value"))
    colors = [to_hex(color) for color in scale.cmap(np.linspace(0, 1, STEPS))]
    # datashader needs a span of some length
    low, high = scale.norm.vmin, max(scale.norm.vmax, np.nextafter(scale.norm.vmin, np.inf))
    image = _pixels(shade(mean, cmap=colors, how="linear", span=(low, high)))
    crowd = _pixels(shade(count, cmap="black", how="log", min_alpha=FAINTEST))
    without = (image[..., 3] == 0) & (crowd[..., 3] > 0)
    image[without, :3] = np.round(255 * np.array(scale.cmap.get_bad()[:3]))
    image[..., 3] = crowd[..., 3]
    return image, extent


def name_image(x, y, codes, colors: list[str]):
    """RGBA image in which the colours of the categories are mixed, and its extent."""
    ds, shade = _datashader()
    import pandas as pd

    canvas, extent = _canvas(ds, x, y)
    frame = _frame(x, y).assign(code=pd.Categorical(codes, categories=range(len(colors))))
    count = canvas.points(frame, "x", "y", ds.by("code", ds.count()))
    return _pixels(shade(count, color_key=colors, how="log", min_alpha=FAINTEST)), extent


def _datashader():
    try:
        import datashader
        from datashader.transfer_functions import shade
    except ImportError:
        raise ImportError(
            "A picture of more than 100,000 points needs datashader: pip install "
            "'finsler_ext[large]'"
        ) from None
    return datashader, shade


def _canvas(ds, x, y):
    """A canvas of square pixels around the points, as far as they have two dimensions."""
    box = []
    for low, high in ((x.min(), x.max()), (y.min(), y.max())):
        box.append((low, high) if high > low else (low - 0.5, high + 0.5))
    sides = np.array([high - low for low, high in box])
    width, height = np.maximum(1, np.round(PIXELS * sides / sides.max())).astype(int)
    canvas = ds.Canvas(int(width), int(height), x_range=box[0], y_range=box[1])
    return canvas, (*box[0], *box[1])


def _frame(x, y, values=None):
    import pandas as pd

    columns = {"x": x, "y": y} if values is None else {"x": x, "y": y, "value": values}
    return pd.DataFrame(columns)


def _pixels(image) -> np.ndarray:
    packed = np.ascontiguousarray(image.to_numpy(), dtype="<u4")
    return packed.view(np.uint8).reshape(*packed.shape, 4).copy()
