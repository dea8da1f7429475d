import os

import pytest

from tests import forked
from trainers.cost.machine_memory import _free_in_container
from trainers.cost.step_cost import step_cost
from trainers.cost.step_trace import outline_model


def test_a_containers_limit_counts(tmp_path):
    assert _free_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.stat").write_text("anon 200\ninactive_file 100\n")
    assert _free_in_container(tmp_path) == []
    (tmp_path / "memory.max").write_text("1000\n")
    assert _free_in_container(tmp_path) == [800]


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="needs Linux"
)
@pytest.mark.parametrize(
    ("variant", "batch_size"),
    [("encapnet14_authors_master", 64), ("capnet_dynamic", 16)],
)
def test_estimate_is_close_to_a_measured_step(variant, batch_size):
    done = forked.run("tests.trainers.cost.one_step", variant, str(batch_size))
    assert done.returncode == 0, done.stderr
    cost = step_cost(outline_model(variant), batch_size)
    # The weights and the optimiser's slots were there before the step.
    expected = cost.memory_bytes - cost.weight_bytes - cost.slot_bytes
    assert 0.75 < expected / int(done.stdout) < 1.25
