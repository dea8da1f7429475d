"""A close test of a trained network: `python -m trainers.evaluate`."""
