"""The search for the best recipe: `python -m trainers.tune`.

`axes` are what may be searched, `space` their values in a recipe, `search`
runs `trials`, and `keras_tuner_…` say what is borrowed from inside keras-tuner.
"""
