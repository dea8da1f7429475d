"""A close test of a trained network: `python -m trainers.evaluate`.

`close_test` measures and writes; `robustness` disturbs the images, `capsules`
looks inside the network.
"""

# Ours: minutes on two cores.
ROBUSTNESS_IMAGES = 2000
