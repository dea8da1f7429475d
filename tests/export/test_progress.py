import io

import pytest

from export.progress import StageProgress

STAGES = {"reading": 2.0, "converting": 10.0, "checking": 3.0}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    return Clock()


def test_time_left_follows_the_pace_of_this_machine(clock):
    progress = StageProgress(STAGES, io.StringIO(), clock)
    progress.begin("reading")
    assert progress.seconds_left() == 15
    clock.now += 1
    assert progress.seconds_left() == 14
    clock.now += 3  # twice as long as expected
    assert progress.seconds_left() == 13
    progress.begin("converting")
    assert progress.seconds_left() == 26
    clock.now += 5
    assert progress.seconds_left() == 21
    clock.now += 60
    assert progress.seconds_left() == 6  # what comes after it


def test_a_stage_that_is_left_out_is_no_error(clock):
    progress = StageProgress(STAGES, io.StringIO(), clock)
    progress.begin("reading")
    clock.now += 2
    progress.begin("checking")
    assert progress.seconds_left() == 13


def test_a_terminal_sees_one_line_that_is_cleared(clock):
    terminal = Terminal()
    progress = StageProgress(STAGES, terminal, clock)
    with progress.shown():
        progress.begin("reading")
        clock.now += 2
        progress.begin("converting")
    *_, drawn, end = terminal.getvalue().split("\r")
    assert drawn == "━━━" + "─" * 21 + " 0:13 left  converting\x1b[K"
    assert end == "\x1b[K"
    assert "\n" not in terminal.getvalue()


def test_nothing_is_drawn_where_nobody_looks(clock):
    stream = io.StringIO()
    progress = StageProgress(STAGES, stream, clock)
    with progress.shown():
        progress.begin("reading")
    assert stream.getvalue() == ""
