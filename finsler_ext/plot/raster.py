"""Images of very many points, made by datashader (extra ``large``): colours mixed in each pixel."""

from __future__ import annotations

import numpy as np

__all__ = ["mean_image", "name_image"]

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
