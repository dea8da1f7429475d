"""What every test shares."""

import os

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# As the programs do, so that all machines test the same forms.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
