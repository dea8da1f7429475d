"""The search for the best recipe: `python -m trainers.tune`.

`space` is what is searched, `search` runs `trials`, and `keras_tuner_…` say
what is borrowed from inside keras-tuner.
"""
