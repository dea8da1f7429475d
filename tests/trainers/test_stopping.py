import signal

import pytest

from trainers import stopping


def test_the_first_signal_asks_and_a_second_ctrl_c_ends():
    asked = []
    with stopping.asked_first(asked.append):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert asked == [signal.SIGINT, signal.SIGTERM]
        with pytest.raises(KeyboardInterrupt) as stop:
            signal.raise_signal(signal.SIGINT)
    assert stopping.exit_code(stop.value) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
