import builtins
import io

import pytest

from trainers import machine

CPU = "processor : {0}\nmodel name : Some CPU\nflags : fpu {1} avx2\n"


@pytest.fixture
def cpu(monkeypatch):
    """Two processors with the flags given."""

    def show(flags):
        text = CPU.format(0, flags) + CPU.format(1, flags)
        monkeypatch.setattr(builtins, "open", lambda path: io.StringIO(text))

    return show


def test_processors_are_counted_and_named(cpu):
    cpu("")
    assert machine.processor() == "2 × Some CPU"


@pytest.mark.parametrize(
    ("flags", "slow"),
    [("avx512_bf16", False), ("amx_bf16", False), ("avx512f", True)],
)
def test_bfloat16_is_slow_without_its_instructions(cpu, flags, slow):
    cpu(flags)
    assert machine.bfloat16_is_slow() == slow


def test_an_unknown_processor_is_not_called_slow(monkeypatch):
    def nothing(path):
        raise OSError

    monkeypatch.setattr(builtins, "open", nothing)
    assert not machine.bfloat16_is_slow()
    assert machine.processor()
