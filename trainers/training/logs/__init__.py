"""Where the numbers of a run go while it is trained, beside `metrics.csv`.

TensorBoard's files are written always. `trackers` opens what else is asked
for: each starts with the recipe, takes a row per epoch and, in the end, the
summary and the run's files (`tracker`).
"""
