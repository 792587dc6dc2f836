"""The height of a layout: its two acts, start, islands and drift."""
