import functools

from benchmarks import turns
from benchmarks.turns import in_turn, turn


def test_all_take_turns_after_one_each():
    calls = []

    def worker(name, job):
        calls.append(name + job)
        return [len(calls), -len(calls)]

    workers = {name: functools.partial(worker, name) for name in "ab"}
    times = in_turn(workers, "!", repeats=2)
    assert calls == ["a!", "b!"] * 3
    assert times == {"a": [3, -3, 5, -5], "b": [4, -4, 6, -6]}


def test_the_first_call_of_a_turn_does_not_count():
    calls = []
    times = turn(lambda: calls.append(None), seconds=1e-3)
    assert len(calls) > 2
    assert len(times) == len(calls) - 1


def test_a_call_that_fills_the_turn_counts():
    calls = []
    times = turn(lambda: calls.append(None), seconds=1e-12)
    assert len(calls) == len(times) == 1


def test_a_contestant_has_the_calls_of_its_jobs(monkeypatch):
    monkeypatch.setattr(turns, "turn", lambda run: [run()])
    turns._prepare(lambda *words: {word: word.upper for word in words}, "ab")
    assert turns._turn_of("b") == ["B"]
