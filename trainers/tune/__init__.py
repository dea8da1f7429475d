"""The search for the best recipe: `python -m trainers.tune`."""
