"""From a trained network to the graph that only infers."""
