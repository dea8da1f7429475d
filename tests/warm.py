"""What `tests.forked` imports before it forks: seconds for every process."""

from trainers.tensorflow_start import start_tensorflow

start_tensorflow()

import trainers.training.train  # noqa: E402, F401
