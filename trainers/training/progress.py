"""What a person sees while a run goes on."""

import sys
import time

from trainers.progress import CLEAR, bar, duration
from trainers.runs.agreement import agreement_losses, collapse_notes

_REFRESH_SECONDS = 0.2


class Progress:
    """One line per epoch; on a terminal, a bar that grows in it.

    Args:
        epochs: Number of epochs.
        steps: Steps of an epoch.
        batch_size: Images of a step.
        quiet: Whether to leave no lines behind: only a bar on a terminal,
            for the whole run, and none after it.
    """

    def __init__(self, epochs, steps, batch_size, quiet=False):
        self._epochs = epochs
        self._steps = steps
        self._batch_size = batch_size
        self._quiet = quiet
        self._live = sys.stdout.isatty()
        self._shown_at = 0.0

    def start(self, epoch, step):
        """Begins an epoch, perhaps in its middle."""
        self._epoch = epoch
        self._began = time.perf_counter()
        self._began_at = step

    def rate(self, step):
        """Images per second since the epoch began."""
        seconds = time.perf_counter() - self._began
        return (step - self._began_at) * self._batch_size / max(seconds, 1e-9)

    def show(self, step, loss, error):
        """Redraws the bar, not too often."""
        now = time.perf_counter()
        if not self._live:
            return
        if now - self._shown_at < _REFRESH_SECONDS and step < self._steps:
            return
        self._shown_at = now
        rate = self.rate(step)
        steps_left = self._steps - step
        if self._quiet:
            steps_left += (self._epochs - self._epoch - 1) * self._steps
        left = steps_left * self._batch_size / max(rate, 1e-9)
        print(
            f"\r{self._head()} {bar(step / self._steps)} "
            f"{step}/{self._steps}  loss {loss:.4f}  error {error:6.2%}  "
            f"{rate:,.0f} images/s  "
            f"{duration(left)} left \x1b[K",
            end="",
            flush=True,
        )

    def finish(self, history):
        """Ends the line of an epoch with its results.

        Args:
            history: A row per finished epoch, this one's last.
        """
        row = history[-1]
        start = CLEAR if self._live else ""
        if self._quiet:
            print(start, end="", flush=True)
            return
        units = agreement_losses(row).values()
        # Not -0.000: a divergence of nothing may be rounded to below it.
        loss = round(sum(units), 3) + 0.0
        middle = f"  agreement {loss:.3f}" if units else ""
        print(
            f"{start}{self._head()}  loss {row['loss']:.4f}  error "
            f"{row['error']:6.2%}{middle}  validation error "
            f"{row['val_error']:6.2%}  {duration(row['seconds'])}",
            *collapse_notes(history),
            sep="\n",
            flush=True,
        )

    def _head(self):
        return (
            f"epoch {self._epoch + 1:>{len(str(self._epochs))}}/{self._epochs}"
        )
