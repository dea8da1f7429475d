from tests.trainers.runs.test_agreement import HISTORY, UNIT
from trainers.training.progress import Progress


def test_a_collapse_is_printed_once_after_its_epoch(capsys):
    progress = Progress(epochs=4, steps=10, batch_size=8)
    found = []
    for epoch in (1, 2, 3):
        progress.start(epoch - 1, 0)
        rows = [
            row | {"error": 0.2, "val_error": 0.3, "seconds": 65.0}
            for row in HISTORY[:epoch]
        ]
        progress.finish(rows)
        found.append(capsys.readouterr().out.splitlines())
    assert [len(lines) for lines in found] == [1, 2, 1]
    line, note = found[1]
    assert line.startswith(
        "epoch 2/4  loss 1.0000  error 20.00%  agreement 0.4"
    )
    assert note.startswith(f"Agreement unit {UNIT} has collapsed: ")
    assert not any("collapsed" in line for line in found[0] + found[2])


def test_a_quiet_run_prints_nothing(capsys):
    progress = Progress(epochs=4, steps=10, batch_size=8, quiet=True)
    progress.start(1, 0)
    progress.finish(HISTORY[:2])
    assert "collapsed" not in capsys.readouterr().out
