"""How far something is, on a terminal: one line that is drawn anew."""

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO, TypeVar

Item = TypeVar("Item")

_BAR = 24
_REFRESH_SECONDS = 0.5
CLEAR = "\r\x1b[K"


def bar(share: float) -> str:
    """Draws a share.

    Example:
        >>> bar(0.25)
        '━━━━━━──────────────────'
    """
    filled = int(_BAR * share)
    return "━" * filled + "─" * (_BAR - filled)


def duration(seconds: float) -> str:
    """Writes a time.

    Example:
        >>> duration(65.4), duration(3600)
        ('1:05', '1:00:00')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d}"
    return f"{minutes}:{seconds:02d}"


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
        self._writing = threading.Lock()
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
            self._write(CLEAR)

    def begin(self, stage: str) -> None:
        """Ends the present stage and begins another."""
        if self._present is not None:
            self._done.append(self._present)
        self._present, self._stage_began = stage, self._clock()
        if self._stream.isatty():
            self._draw()

    def say(self, text: str, stream: TextIO | None = None) -> None:
        """Prints a line in place of the one that is drawn, which comes anew."""
        with self._writing:
            if self._stream.isatty():
                print(CLEAR, end="", file=self._stream, flush=True)
            print(text, file=stream or self._stream, flush=True)

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
        share = elapsed / max(elapsed + left, 1e-9)
        self._write(
            f"\r{bar(share)} {duration(left)} left  {self._present}\x1b[K"
        )

    def _write(self, text):
        with self._writing:
            self._stream.write(text)
            self._stream.flush()


class ShareProgress:
    """A line that says what share is done, and the time left.

    Args:
        name: Of what is done.
        stream: Where the line is drawn, if it is a terminal; stderr.
        clock: Tells the time in seconds.
    """

    def __init__(
        self,
        name: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._name = name
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._began = clock()
        self._shown_at = -math.inf

    def __call__(self, share: float) -> None:
        """Draws, not too often; the end of everything ends the line."""
        now = self._clock()
        recent = now - self._shown_at < _REFRESH_SECONDS and share < 1
        if not self._stream.isatty() or recent or share <= 0:
            return
        self._shown_at = now
        left = duration((now - self._began) * (1 - share) / share)
        print(
            f"\r  {self._name}: {share:.0%}, {left} left \x1b[K",
            end="\n" if share >= 1 else "", file=self._stream, flush=True,
        )  # fmt: skip

    def each(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yields items, and shows how many of them are done, till the end."""
        for number, item in enumerate(items, start=1):
            yield item
            if number < len(items):
                self(number / len(items))
        self.clear()

    def clear(self) -> None:
        """Removes the line."""
        if self._stream.isatty():
            print(CLEAR, end="", file=self._stream, flush=True)
