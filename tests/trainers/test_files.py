import os
import time

import pytest

from trainers.files import check_writable, new_folder, written_atomically
from trainers.recipe import Recipe


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    check_writable(tmp_path / "new" / "run")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(os, "access", lambda *_: False)
    message = f"Received: {tmp_path}/run; {tmp_path} may not be written to"
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / "run")


def test_a_full_disk_is_told_before_and_with_the_path(tmp_path, monkeypatch):
    monkeypatch.setattr("trainers.files._LEAST_FREE", 1 << 80)
    with pytest.raises(ValueError, match="MiB left on its disk"):
        check_writable(tmp_path)
    with (
        pytest.raises(OSError, match=f"No space.*{tmp_path}/a.json"),
        written_atomically(tmp_path / "a.json"),
    ):
        raise OSError(28, "No space left on device")


def test_a_new_folder_is_named_after_the_time_and_what_it_is_for(monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda _: "20300102-030405")
    label = Recipe("encapnet_tiny", dataset="npz:a/b.npz").label
    assert str(new_folder("tune", label)) == (
        "runs/20300102-030405-tune-encapnet_tiny-npz"
    )
