import dataclasses
import math

import pytest

from encapnet_tf.models import variant_config
from trainers.cost.step_trace import outline_model
from trainers.recipe import Recipe, make_recipe
from trainers.reproduce.experiments import DATA_NAMES, EXPERIMENTS
from trainers.reproduce.opponents import AFFINE, EQUAL_TIME, FEW_LABELS
from trainers.reproduce.rows import DECODER

ROWS = [
    pytest.param(experiment, row, id=f"{name}-{row.name}")
    for name, experiment in EXPERIMENTS.items()
    for row in experiment.rows
]


def errors(experiment, data="cifar10"):
    return [row.paper.get(data) for row in EXPERIMENTS[experiment].rows]


def test_the_paper_s_errors_are_all_here():
    assert errors("table1") == [14.28, 12.66, 14.43, 12.09, 13.87, 11.93]
    assert errors("table1", "mnist") == [0.37, 0.31, 0.38, 0.33, 0.31, 0.25]
    assert errors("capconv_design") == [
        9.83, 8.05, 9.11, 7.41, 6.81, 6.75, 5.82, 4.55,
    ]  # fmt: skip
    assert errors("regularization") == [
        5.82, 5.31, 4.58, 4.71, 4.77, 5.79, None, 5.01, 4.90, 8.03, 7.72, 7.67,
    ]  # fmt: skip
    assert errors("capnet_ablation") == [
        14.79, 14.41, 14.28, 14.25, 14.35, 14.11, 15.61, 15.38, 14.97, 15.02,
        14.87, 14.50, 14.30, 15.18, 14.76, None, 15.31,
    ]  # fmt: skip
    assert errors("state_of_the_art") == [4.55, 3.13, 3.10]
    assert errors("state_of_the_art", "cifar100") == [26.77, 24.01, 24.18]
    assert errors("state_of_the_art", "svhn") == [2.01, 1.64, 1.52]
    assert errors("h_imagenet", "h_imagenet") == [
        48.23, 43.15, 42.76, 40.18, 40.05, 58.17,
    ]  # fmt: skip


def test_what_table_1_says_of_costs():
    costs = [row.cost for row in EXPERIMENTS["table1"].rows]
    assert [(c.memory, c.batch, c.seconds) for c in costs] == [
        (3961, 8, 0.444), (10078, 4, 0.957), (1652, 128, 0.026),
        (2420, 128, 0.146), (1433, 128, 0.039), (1755, 128, 0.061),
    ]  # fmt: skip


def uniform(value):
    """One value in place of as many as there are modules."""
    same = isinstance(value, tuple) and len(set(value)) == 1
    return value[0] if same else value


def settings(network):
    found = dataclasses.asdict(network)
    return {name: uniform(value) for name, value in found.items()}


@pytest.mark.parametrize(("experiment", "row"), ROWS)
def test_a_row_s_network_is_its_variant_but_for_what_the_row_names(
    experiment, row
):
    found = settings(make_recipe(experiment.fields | row.fields).network())
    wanted = settings(variant_config(row.fields["variant"]))
    named = dict(row.fields.get("override", {}))
    if "decoder" in row.fields:
        named["decoder"] = row.fields["decoder"]
    if options := named.pop("agreement_options", {}):
        wanted["agreement_options"] |= options
    for name, value in named.items():
        wanted[name] = uniform(value)
    assert found == wanted


@pytest.mark.parametrize(("experiment", "row"), ROWS)
def test_a_row_has_the_paper_s_numbers_or_says_why_not(experiment, row):
    assert set(row.paper) <= set(DATA_NAMES)
    ours = row in (*EQUAL_TIME, *FEW_LABELS, *AFFINE, *DECODER)
    assert bool(row.paper or row.note) is not ours


@pytest.mark.parametrize("experiment", EXPERIMENTS.values())
def test_rows_differ_and_have_names_for_folders(experiment):
    rows = experiment.rows
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.name.replace("_", "").isalnum() for row in rows)
    made = [make_recipe(experiment.fields | row.fields) for row in rows]
    # Networks compare whole: an override that changes nothing shows.
    settings = [
        (r.network(), r.loss, r.optimizer, r.augmentation, r.limit_train)
        for r in made
    ]
    assert all(
        one != other
        for place, one in enumerate(settings)
        for other in settings[place + 1 :]
    )


def network(experiment, name):
    (row,) = (r for r in EXPERIMENTS[experiment].rows if r.name == name)
    return make_recipe(row.fields).network()


def test_the_rows_of_table_3_change_what_they_say():
    full = variant_config("encapnet_v1")
    assert network("capconv_design", "8") == full
    first = network("capconv_design", "1")
    assert (first.aide[0], first.skip[0], first.agreement[0]) == ("none",) * 3
    best = network("capconv_design", "4")
    assert (best.coefficients[0], best.skip[0]) == ("both", "none")
    with_ot = network("regularization", "c")
    assert set(with_ot.agreement) == {"one"}
    assert with_ot.agreement_options == full.agreement_options
    raw = network("regularization", "d3_l2").agreement_options
    assert (raw.extractor, raw.cost) == ("none", "l2")
    # ResNet's own generator is the vanilla one.
    plain = network("regularization", "resnet_b").agreement_options
    assert (plain.generator, plain.divergence) == ("vanilla", "kl")


def count(fields):
    recipe = make_recipe(fields)
    model = outline_model(
        recipe.variant, **({"agreement": "none"} | recipe.override)
    )
    return sum(math.prod(v.shape) for v in model.trainable_variables)


def test_the_opponents_have_the_parameters_of_encapnet_small():
    """At inference, within one percent; the labels tell the numbers."""
    encapnet, *others = (count(row.fields) for row in EQUAL_TIME)
    assert encapnet == 1_279_296
    for row, parameters in zip(EQUAL_TIME[1:], others, strict=True):
        assert parameters == pytest.approx(encapnet, rel=0.01)
        assert f"{parameters:,}" in row.label


@pytest.mark.parametrize("name", ["equal_time", "affine"])
def test_opponents_share_all_but_the_network_and_what_was_tuned(name):
    experiment = EXPERIMENTS[name]
    first, *others = (
        make_recipe(experiment.fields | row.fields | {"epochs": 1})
        for row in experiment.rows
    )
    own = {"variant", "override", "learning_rate", "weight_decay",
           "augmentation"}  # fmt: skip
    for other in others:
        for field in set(Recipe.__dataclass_fields__) - own:
            assert getattr(other, field) == getattr(first, field), field


def test_few_labels_are_as_many_as_their_rows_say():
    for row in FEW_LABELS:
        name, images = row.point
        assert row.label == f"{name}, {images:,} images"
        taken, share = (
            row.fields[name] for name in ("limit_train", "validation_fraction")
        )
        assert taken - round(taken * share) == images
    # The recipes of a network are the same for every number of images.
    by_network = {}
    for row in FEW_LABELS:
        fields = {**row.fields, "limit_train": None}
        by_network.setdefault(row.point[0], []).append(fields)
    for found in by_network.values():
        assert len(found) == 5
        assert all(fields == found[0] for fields in found)


def test_photographs_in_folders_are_mirrored_where_the_paper_mirrors():
    rows = {row.name: row for row in EXPERIMENTS["h_imagenet"].rows}
    mirrored = [
        name for name, row in rows.items()
        if make_recipe(row.fields).mirrors(is_safe=False)
    ]  # fmt: skip
    assert mirrored == ["v3_strong"]
