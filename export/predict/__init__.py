"""Classes for one's own images; the program is `export.predict`."""
