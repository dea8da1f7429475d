"""What a training step costs, in memory, multiply-adds and time.

`step_cost` counts in a traced graph, without allocating; `verdict` says whether
the step fits into the memory there is.
"""
