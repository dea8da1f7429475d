"""Where the numbers of a run go while it is trained, beside `metrics.csv`.

A log starts with the recipe, gets a row per epoch (`write`) and the summary
and the files of the run (`end`). TensorBoard has one always; `trackers` opens
those that are asked for.
"""
