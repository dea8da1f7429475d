import os
import subprocess
import sys

import pytest

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


STEP = """
import pathlib
import sys
import keras
import tensorflow as tf
from encapnet_tf import create_model
from encapnet_tf.losses import MarginLoss

def status(name):
    text = pathlib.Path("/proc/self/status").read_text()
    return int(text.split(name + ":")[1].split()[0]) * 1024

model = create_model(sys.argv[1])
optimizer = keras.optimizers.Adam()
optimizer.build(model.trainable_variables)
images = tf.random.uniform((int(sys.argv[2]), *model.input_shape[1:]))
labels = tf.zeros(len(images), tf.int32)
loss = MarginLoss()

@tf.function(jit_compile=False)
def step():
    with tf.GradientTape() as tape:
        total = tf.add_n([loss(labels, model(images, training=True))]
                         + model.losses)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(total, variables), variables))

step.get_concrete_function()
before = status("VmRSS")
pathlib.Path("/proc/self/clear_refs").write_text("5")
step()
print(status("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="needs Linux"
)
@pytest.mark.parametrize(
    ("variant", "batch_size"),
    [("encapnet14_authors_master", 64), ("capnet_dynamic", 16)],
)
def test_estimate_is_close_to_a_measured_step(variant, batch_size):
    grown = subprocess.run(
        [sys.executable, "-c", STEP, variant, str(batch_size)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    cost = step_cost(outline_model(variant), batch_size)
    # The weights and the optimiser's slots were there before the step.
    expected = cost.memory_bytes - cost.weight_bytes - cost.slot_bytes
    assert 0.75 < expected / int(grown) < 1.25
