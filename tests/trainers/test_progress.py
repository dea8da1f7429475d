import io

import pytest

from trainers.progress import ShareProgress, StageProgress

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


def test_a_line_that_is_said_stands_above_the_one_that_is_drawn(clock):
    terminal = Terminal()
    progress = StageProgress(STAGES, terminal, clock)
    with progress.shown():
        progress.begin("reading")
        progress.say("read")
        errors = io.StringIO()
        progress.say("not read", errors)
    assert errors.getvalue() == "not read\n"
    *_, said, cleared, end = terminal.getvalue().split("\r")
    assert (said, cleared, end) == ("\x1b[Kread\n", "\x1b[K", "\x1b[K")


def test_a_share_tells_the_time_left_on_a_terminal(clock):
    terminal = Terminal()
    show = ShareProgress("run", terminal, clock)
    clock.now += 30
    show(0.25)
    clock.now += 0.1
    show(0.3)  # too soon
    clock.now += 29.9
    show(1.0)
    first, last = terminal.getvalue().split("\r")[1:]
    assert first.startswith("  run: 25%, 1:30 left")
    assert last.startswith("  run: 100%, 0:00 left")
    assert last.endswith("\n")


def test_items_are_counted_when_they_are_done(clock):
    terminal = Terminal()
    for wait in ShareProgress("run", terminal, clock).each([10, 20]):
        clock.now += wait
    assert "50%, 0:10 left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    stream = io.StringIO()
    assert list(ShareProgress("run", stream).each("ab")) == ["a", "b"]
    assert stream.getvalue() == ""
