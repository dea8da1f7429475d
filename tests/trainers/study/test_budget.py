from hypothesis import given
from hypothesis import strategies as st

from trainers.study.budget import plan_by_time


@given(
    seconds=st.floats(0.1, 1e5),
    step=st.floats(1e-3, 100),
    steps=st.integers(1, 5000),
    least=st.integers(1, 20),
)
def test_a_plan_by_time_fills_the_time_and_no_more(seconds, step, steps, least):
    plan = plan_by_time(seconds, step, steps, least)
    total = plan.epochs * plan.steps_per_epoch
    wanted = max(1, int(seconds / step))
    assert total <= wanted
    # What is left over is less than a step of every epoch.
    assert wanted - total < plan.epochs
    assert plan.steps_per_epoch <= steps
    assert plan.epochs >= min(least, wanted // 10)
    assert plan.steps_per_epoch >= min(10, steps // 2, wanted)
