"""A run's weights in one small file; the program is `export.weights`."""
