"""The training loop and what it is made of.

`train` is a whole run; `loop` trains with `step`, `objective` and `devices`,
`checkpoints` keep it, `finishing` tests it, once.
"""
