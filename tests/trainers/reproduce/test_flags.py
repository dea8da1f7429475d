import dataclasses

import pytest
from absl import flags

from encapnet_tf.models import variant_config
from trainers.reproduce import __main__ as reproduce
from trainers.reproduce.folder import narrowed


@pytest.mark.parametrize(
    ("dataset", "data"),
    [
        ("npz:/data/cifar10_20k.npz", "cifar10"),
        ("cifar100", "cifar100"),
        ("folder:svhn", "svhn"),
        ("house_numbers", "cifar10"),
    ],
)
def test_the_name_of_the_data_tells_which_numbers_to_take(make, dataset, data):
    reproduction = make(
        "--experiment=state_of_the_art", "--epochs=1", f"--dataset={dataset}"
    )
    assert reproduction.paper_data == data
    assert reproduction.paper_has_data == (dataset != "house_numbers")


def test_narrow_networks_keep_their_form(make):
    assert narrowed(variant_config("capnet_em"), 4) == {
        "stem": ((8, 1), (16, 1), (32, 2), (64, 2)),
        "num_capsules": 8,
        "middle_capsules": 8,
    }
    assert narrowed(variant_config("resnet18"), 8) == {
        "stem": ((4, 1),),
        "channels": (8, 16, 32, 64),
    }
    reproduction = make(
        "--experiment=regularization", "--epochs=1", "--narrow=4",
        "--override=type2_layers=(1,1,1,1)",
    )  # fmt: skip
    networks = {
        row.name: reproduction.recipe(row).network()
        for row in reproduction.rows
    }
    assert networks["c"].num_capsules == 8
    assert networks["c"].type2_layers == (1, 1, 1, 1)
    assert networks["c"].agreement[0] == "one"
    assert networks["resnet_c"].channels == (16, 32, 64, 128)


def test_flags_of_a_recipe_hold_for_all_rows(make):
    reproduction = make(
        "--experiment=table1", "--epochs=1", "--learning_rate=0.01",
        "--schedule=cosine", "--set=b.batch_size=4", "--batch_size=32",
    )  # fmt: skip
    recipes = {r.name: reproduction.recipe(r) for r in reproduction.rows}
    assert {r.learning_rate for r in recipes.values()} == {0.01}
    assert (recipes["a"].batch_size, recipes["b"].batch_size) == (32, 4)
    assert recipes["a"].weight_decay == 5e-4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--experiment=table9"], "--experiment must be one of table1.*Rec"),
        ([], "--experiment must be one of.*Received: --experiment=None"),
        (["--experiment=table1"], "--epochs or --minutes. Received: neither"),
        (
            ["--experiment=table1", "--minutes=1", "--epochs=2"],
            "either time or steps. Received",
        ),
        (["--experiment=table1", "--minutes=0"], "must be > 0. Received"),
        (
            ["--experiment=table1", "--epochs=1", "--rows=a,z"],
            "--rows must be some of a, b, c.*Received: z",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--variant=resnet18"],
            "say what is theirs: variant. Received: variant",
        ),
        (
            ["--experiment=capconv_design", "--epochs=1",
             "--override=skip=none"],
            "Received: skip for all of them",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--override=colour=red"],
            "fields of the rows' networks. Received: colour",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=z.batch_size=1"],
            "--set takes ROW.FIELD=VALUE.*Received: --set=z.batch_size=1",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=a.colour=1"],
            "--set takes.*Received: --set=a.colour=1",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--set=a.batch_size=0"],
            "Row a: `batch_size` must be >= 1. Received",
        ),
        (
            ["--experiment=table1", "--epochs=1", "--narrow=3"],
            "Row e: The last channels of `stem`.*Received",
        ),
    ],
)  # fmt: skip
def test_bad_flags_are_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)


def test_the_plan_is_part_of_what_is_trained(make):
    reproduction = make("--experiment=table1", "--minutes=1", "--rows=c")
    row = reproduction.rows[0]
    assert reproduction.plan(row) is None
    plan = reproduction.save_plan(row, seconds_per_step=0.5, steps=50)
    assert plan == reproduction.plan(row)
    recipe = reproduction.planned_recipe(row, seed=4)
    assert recipe == dataclasses.replace(
        reproduction.recipe(row), epochs=3, steps_per_epoch=40, seed=4
    )


def test_an_experiment_may_have_data_of_its_own():
    values = flags.FlagValues()
    reproduce.define(values)
    values(["reproduce", "--experiment=affine", "--epochs=1"])
    reproduction = reproduce.from_flags(values)
    assert reproduction.given["dataset"] == "affine_mnist"
    assert reproduction.path.name == "affine-affine_mnist"
