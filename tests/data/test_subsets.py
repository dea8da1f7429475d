import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from encapnet_tf.data import subsets


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.integers(0, 1000),
    st.floats(0, 1),
)
def test_choice_has_the_count_and_every_class_within_one_of_its_share(
    labels, seed, fraction
):
    labels = np.array(labels)
    count = round(fraction * len(labels))
    chosen = subsets.stratified_choice(labels, count, seed)
    assert len(np.unique(chosen)) == count
    for label in np.unique(labels):
        share = (labels == label).sum() * count / len(labels)
        assert abs((labels[chosen] == label).sum() - share) < 1 + 1e-9


def test_choice_depends_on_the_seed_alone():
    labels = np.arange(1000) % 10
    first = subsets.stratified_choice(labels, 100, seed=1)
    again = subsets.stratified_choice(labels, 100, seed=1)
    other = subsets.stratified_choice(labels, 100, seed=2)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_choice_leaves_one_of_a_class_where_asked():
    labels = np.array([0, 0, 0, 0, 1])
    chosen = subsets.stratified_choice(labels, 5, seed=0, leave=1)
    assert labels[chosen].tolist() == [0, 0, 0]
