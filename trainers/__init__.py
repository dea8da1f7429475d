"""Programs that train, evaluate and measure, and what they share."""

import os

# TensorFlow's start-up chatter is no news to somebody who trains.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
