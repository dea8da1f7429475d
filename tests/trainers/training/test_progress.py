import io
import sys

from trainers.training import progress as module
from trainers.training.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


ROW = {
    "epoch": 1, "loss": 0.5, "error": 0.25, "val_error": 0.2, "seconds": 61.0,
}  # fmt: skip


def watched(monkeypatch, stream, quiet):
    monkeypatch.setattr(sys, "stdout", stream)
    now = iter(range(0, 1000, 10))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    progress = Progress(epochs=3, steps=4, batch_size=10, quiet=quiet)
    progress.start(0, 0)
    progress.show(1, 0.5, 0.25)
    progress.finish(ROW)
    return stream.getvalue()


def test_a_quiet_run_shows_a_bar_for_all_of_it_and_takes_it_away(monkeypatch):
    shown = watched(monkeypatch, Terminal(), quiet=True)
    # A step took 20 s by this clock; 3 of this epoch and 8 more are left.
    assert "epoch 1/3 ━━━━━━" in shown
    assert "3:40 left" in shown
    assert shown.endswith("\r\x1b[K")


def test_a_run_shows_the_time_left_of_its_epoch_then_a_line(monkeypatch):
    shown = watched(monkeypatch, Terminal(), quiet=False)
    assert "1:00 left" in shown
    assert shown.endswith(
        "epoch 1/3  loss 0.5000  error 25.00%  validation error 20.00%  1:01\n"
    )


def test_without_a_terminal_there_is_no_bar(monkeypatch):
    assert watched(monkeypatch, io.StringIO(), quiet=True) == ""
    shown = watched(monkeypatch, io.StringIO(), quiet=False)
    assert shown.count("\n") == 1
    assert "━" not in shown
