import numpy as np
import pytest

from encapnet_tf.checks import check_choice, check_positive


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_positive_integers_pass(value):
    check_positive(count=value)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", None])
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ValueError, match="`count` must be.*Received: count="):
        check_positive(count=value)


def test_a_choice_is_refused_with_the_list():
    check_choice("mode", "a", ("a", "b"))
    with pytest.raises(ValueError, match="'a', 'b'. Received: mode='c'"):
        check_choice("mode", "c", ("a", "b"))
