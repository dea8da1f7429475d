"""Programs that train, evaluate and measure: `python -m trainers.fit --help`.

Each says what its flags are before TensorFlow starts; `tensorflow_start`
starts it, quietly. The packages are subjects; what they share stands here.
"""

import os

# Importing `encapnet_tf` must not start TensorFlow.
os.environ.setdefault("ENCAPNET_TF_LAZY", "1")
# TensorFlow takes oneDNN by itself only on CPUs with AVX-512's dot products; on
# others training is 1.1 to 1.3 times as fast with it (measured on AVX2).
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
