import keras
import numpy as np
import pytest

from encapnet_tf import create_model
from tests.conformance import CAPNET
from trainers.reproduce.figures.routing_dynamics import (
    NUM_BINS,
    RoutingDynamics,
    has_routing,
    measure_votes,
    read_snapshots,
    vote_statistics,
)
from trainers.runs.folder import RunFolder


def test_votes_are_sorted_as_a_loop_sorts_them():
    rng = np.random.default_rng(0)
    capsules = rng.normal(size=(3, 4))
    votes = rng.normal(size=(3, 50, 4))
    counts, sums = np.zeros(NUM_BINS), np.zeros(NUM_BINS)
    for capsule, row in zip(capsules, votes, strict=True):
        for vote in row:
            length = np.sqrt((vote**2).sum())
            cosine = (capsule @ vote) / (length * np.sqrt(capsule @ capsule))
            edges = np.linspace(-1, 1, NUM_BINS + 1)
            place = np.searchsorted(edges, cosine, side="right") - 1
            counts[place] += 1
            sums[place] += length
    ours = vote_statistics(capsules, votes)
    np.testing.assert_array_equal(ours[0], counts)
    np.testing.assert_allclose(ours[1], sums)


def test_the_ends_and_zero_have_their_bins():
    capsules = np.array([[1.0, 0.0]])
    votes = np.array([[[2.0, 0], [-3.0, 0], [0, 5.0], [0, 0]]])
    counts, sums = vote_statistics(capsules, votes)
    assert counts[-1] == counts[0] == 1
    assert counts[NUM_BINS // 2] == 2
    assert (sums[-1], sums[0], sums[NUM_BINS // 2]) == (2, 3, 5)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["capnet_dynamic", "capnet_em"])
def test_the_votes_of_a_network_add_up(variant, stripes):
    keras.utils.set_random_seed(0)
    model = create_model(variant, num_classes=3, **CAPNET)
    assert has_routing(model)
    found = measure_votes(model, stripes.test)
    assert found.percent.sum() == pytest.approx(100)
    shown = found.percent > 0
    assert (found.lengths[shown] >= 0).all()
    assert np.isnan(found.lengths[~shown]).all()


def test_networks_without_routing_leave_nothing(tmp_path):
    model = create_model("encapnet_tiny", num_classes=3)
    assert not has_routing(model)
    watch = RoutingDynamics(1, RunFolder(tmp_path))
    watch.set_model(model)
    watch.on_epoch_end(0)
    assert read_snapshots(RunFolder(tmp_path)) == []


def test_snapshots_come_at_the_paper_s_shares_and_survive_a_stop(
    tmp_path, stripes
):
    folder = RunFolder(tmp_path)
    model = create_model("capnet_dynamic", num_classes=3, **CAPNET)

    def watch(epochs):
        callback = RoutingDynamics(10, folder)
        callback.split = stripes.test.take(6)
        callback.set_model(model)
        for epoch in epochs:
            callback.on_epoch_end(epoch)
        return [s["epoch"] for s in read_snapshots(folder)]

    assert watch(range(5)) == [1, 4]
    # Killed before the checkpoint of epoch 4: it comes again.
    assert watch(range(3, 10)) == [1, 4, 10]
    snapshot = read_snapshots(folder)[-1]
    assert len(snapshot["percent"]) == len(snapshot["lengths"]) == NUM_BINS
