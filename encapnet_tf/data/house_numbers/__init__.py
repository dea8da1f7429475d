"""The built-in data, drawn here: `cache` draws a set once and keeps it.

`glyphs` are its digits, `scenery` all around them, `rendering` puts together.
"""
