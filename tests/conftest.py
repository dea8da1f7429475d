"""What every test shares."""

import os

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
