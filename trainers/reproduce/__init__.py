"""The paper's tables and figures: `python -m trainers.reproduce`."""
