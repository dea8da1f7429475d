"""How fast things are here: `python -m trainers.benchmark`."""
