"""What every test shares."""

import os

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Programs under test start as a user's do: quietly, see trainers/__init__.py.
os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
