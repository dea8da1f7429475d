from tests.trainers.tune.conftest import outcome
from trainers.tune import report
from trainers.tune.trials import TrialOutcome


def test_the_verdict_says_what_the_noise_allows(recipe):
    best, near, far = (
        outcome(recipe, trial, error)
        for trial, error in (("0", 0.10), ("1", 0.12), ("2", 0.2))
    )
    # 2 √(p·(1 − p)/1000 + q·(1 − q)/1000), p = 101/1002, q = 121/1002.
    sentence = report.verdict([far, near, best])
    assert "trial 0 with 10.00%, but trial 1 is within the noise" in sentence
    assert "difference, 2.81%" in sentence
    assert "20.00%, is farther" in report.verdict([far, best])
    assert "the only one" in report.verdict([best])
    many = [outcome(recipe, str(i), 0.1) for i in range(3)]
    assert "trials 1 and 2 are" in report.verdict(many)
    many = [outcome(recipe, str(i), 0.1) for i in range(9)]
    assert "8 others are" in report.verdict(many)


def test_the_spread_over_seeds_is_noise_too(recipe):
    def trial(name, errors):
        results = {
            seed: {"validation_error": e, "validation_images": 10**9}
            for seed, e in enumerate(errors)
        }
        return TrialOutcome(
            trial=name, status="completed", values={}, recipe=recipe(),
            results=results,
        )  # fmt: skip

    calm = [trial("0", [0.10, 0.10]), trial("1", [0.12, 0.12])]
    assert "farther" in report.verdict(calm)
    wild = [trial("0", [0.05, 0.15]), trial("1", [0.07, 0.17])]
    assert "within the noise" in report.verdict(wild)


def test_long_tables_are_cut(recipe):
    table = report.table(
        [outcome(recipe, str(i), 0.1, cost="l2") for i in range(25)]
    )
    assert len(table.splitlines()) == 22
    assert table.endswith("and 5 more in trials.csv")
