"""The progress of an export, as a terminal shows it."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

_BAR = 24
_REFRESH_SECONDS = 0.5


class StageProgress:
    """One line that names the present stage; on a terminal only.

    Args:
        stages: The stages in order, with the seconds that each may take. What
            they took on this machine corrects those of the stages to come.
        stream: Where the line is drawn.
        clock: Tells the time in seconds.
    """

    def __init__(
        self,
        stages: dict[str, float],
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._stages = stages
        self._stream = sys.stdout if stream is None else stream
        self._clock = clock
        self._present: str | None = None
        self._done: list[str] = []
        self._began = self._stage_began = clock()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Keeps the line up to date, and clears it at the end."""
        if not self._stream.isatty():
            yield
            return
        ended = threading.Event()

        def draw():
            while not ended.wait(_REFRESH_SECONDS):
                self._draw()

        thread = threading.Thread(target=draw, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._write("\r\x1b[K")

    def begin(self, stage: str) -> None:
        """Ends the present stage and begins another."""
        if self._present is not None:
            self._done.append(self._present)
        self._present, self._stage_began = stage, self._clock()
        if self._stream.isatty():
            self._draw()

    def seconds_left(self) -> float:
        """Returns how much longer it will most likely take."""
        now = self._clock()
        expected = sum(self._stages[stage] for stage in self._done)
        taken = self._stage_began - self._began
        pace = taken / expected if expected else 1.0
        present = pace * self._stages[self._present]
        coming = sum(self._stages.values()) - expected
        coming -= self._stages[self._present]
        return max(present - (now - self._stage_began), 0) + pace * coming

    def _draw(self):
        if self._present is None:
            return
        elapsed, left = self._clock() - self._began, self.seconds_left()
        filled = round(_BAR * elapsed / max(elapsed + left, 1e-9))
        bar = "━" * filled + "─" * (_BAR - filled)
        minutes, seconds = divmod(round(left), 60)
        time_left = f"{minutes}:{seconds:02d} left"
        self._write(f"\r{bar} {time_left}  {self._present}\x1b[K")

    def _write(self, text):
        self._stream.write(text)
        self._stream.flush()
