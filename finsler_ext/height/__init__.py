"""The height of a layout: its two acts, first height, axis, islands and drift."""
