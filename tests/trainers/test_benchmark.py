import csv
import dataclasses
import functools
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from absl import flags
from scipy import stats

from encapnet_tf.config import VARIANTS, override
from encapnet_tf.layers import GroupedConv2D
from tests.trainers.conftest import LEAST
from tests.trainers.test_plots import size_of
from trainers.benchmark import __main__ as benchmark
from trainers.benchmark import calls as benchmark_calls
from trainers.benchmark import child, plots, tasks
from trainers.benchmark.child import Measurer
from trainers.benchmark.compare import compare, comparison_text
from trainers.benchmark.growth import GROWTHS, Growth, fit_exponent, fit_growths
from trainers.benchmark.report import csv_rows, tables
from trainers.benchmark.results import (
    WITH_UNITS,
    WITHOUT_UNITS,
    Measurement,
    Results,
    read_results,
    write_results,
)
from trainers.cost.machine_memory import Memory
from trainers.cost.step_cost import step_cost
from trainers.cost.step_trace import outline_model
from trainers.cost.timing import interleaved_seconds
from trainers.recipe import make_recipe

# One capsule layer with an aide.
SMALL = LEAST | {"aide": "all"}


def measurement(name="net", action="train", size=8, seconds=(1.0,), **fields):
    products = (0.5,) * len(seconds)
    fields = {"part": "variants", "product_seconds": products} | fields
    return Measurement(
        name=name, action=action, size=size, seconds=seconds, **fields
    )


def results(*measurements):
    return Results(
        "a machine", {"tensorflow": "2"}, {"batch": 8}, 0.1,
        {1000: (0.2, 0.1)}, measurements,
    )  # fmt: skip


def run(*arguments, ask=None):
    """Runs the program in this process; returns its exit code."""
    values = flags.FlagValues()
    benchmark.define(values)
    return benchmark.main(values(["benchmark", *arguments])[1:], values, ask)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Everything, measured on the least that there is, and what was said."""
    folder = tmp_path_factory.mktemp("benchmark")
    said = []
    with pytest.MonkeyPatch.context() as patch:
        small = override(VARIANTS["encapnet_tiny"], **SMALL)
        patch.setitem(VARIANTS, "encapnet_least", small)
        for name, value in {
            "_PRODUCTS": (64, 128),
            "_AGREEMENT": ("encapnet_least",),
            "_CONVOLUTIONS": {"variant": "encapnet_least", "batch": 2},
            "_PIPELINE_IMAGES": 50,
            "_SOLVER_BATCHES": (8,),
        }.items():
            patch.setattr(tasks, name, value)
        patch.delitem(GROWTHS, "width")
        patch.delitem(GROWTHS, "depth")
        solver = GROWTHS["iterations"]._replace(sizes=(1, 2, 3))
        patch.setitem(GROWTHS, "iterations", solver)
        patch.setitem(GROWTHS, "batch", Growth("images", (1, 2, 4), case))
        patch.setattr("builtins.print", lambda *a, **_: said.append(a[:1]))
        code = run(
            "--variants=encapnet_least,encapnet_least", "--batch=4",
            "--seconds=0.001", f"--out={folder}", ask=Measurer().answer,
        )  # fmt: skip
    assert code == 0
    return folder, "\n".join(text for line in said for text in line)


def case(size):
    return {"variant": "encapnet_tiny", "override": LEAST, "batch_size": size}


def test_every_part_is_measured_with_its_spread(measured):
    found = read_results(measured[0] / "benchmark.json").measurements
    conv = "7×7/2 4→8 on 16×16"
    assert [tuple(m.key) for m in found] == [
        ("variants", "encapnet_least", "train", 4),
        ("variants", "encapnet_least", "inference", 4),
        ("agreement", "encapnet_least", "train with units", 4),
        ("agreement", "encapnet_least", "train without", 4),
        ("convolutions", "encapnet_least", "train", 2),
        ("convolutions", conv, "forward", 2),
        ("convolutions", conv, "backward", 2),
        ("pipeline", "none", "read", 4),
        ("pipeline", "mild", "read", 4),
        ("pipeline", "strong", "read", 4),
        *(
            ("solver", domain, action, 8)
            for domain in ("scaling", "log")
            for action in ("value", "value and gradient")
        ),
        ("growth", "batch", "train", 1),
        ("growth", "batch", "train", 2),
        ("growth", "batch", "train", 4),
        *(
            ("growth", "iterations", "value and gradient", size)
            for size in (1, 2, 3)
        ),
    ]
    for m in found:
        assert len(m.seconds) >= 5
        assert len(m.product_seconds) == len(m.seconds)
        assert m.time.low <= m.time.median <= m.time.high


def test_the_file_says_what_computed_and_keeps_every_number(measured):
    content = json.loads((measured[0] / "benchmark.json").read_text())
    assert set(content["versions"]) >= {"tensorflow", "keras", "encapnet_tf"}
    assert content["machine"]
    assert content["settings"]["batch"] == 4
    assert set(content["growth"]) == {"batch", "iterations"}
    stored = read_results(measured[0] / "benchmark.json")
    assert content["agreement_ratios"] == stored.agreement_ratios != {}
    assert content["peak_gflops"] == stored.peak_gflops
    assert stored.products.keys() == {64, 128}
    train, inference, *_ = stored.measurements
    assert train.memory_bytes > 0
    assert train.counted_bytes > 0
    assert inference.memory_bytes is None


def test_multiply_adds_are_those_of_the_summary(measured):
    stored = read_results(measured[0] / "benchmark.json")
    train, inference = stored.of_part("variants")
    step, forward, backward = stored.of_part("convolutions")
    cost = step_cost(outline_model("encapnet_tiny", **SMALL), 4)
    assert train.multiply_adds == 4 * cost.step_multiply_adds
    assert inference.multiply_adds == 4 * cost.inference_multiply_adds
    assert step.multiply_adds == train.multiply_adds // 2
    # Batch 2, 8·8 places of 8 channels, 7·7 places of 4 channels each.
    assert forward.multiply_adds == 2 * 64 * 8 * 49 * 4
    assert backward.multiply_adds == 2 * forward.multiply_adds


def test_tables_show_every_part(measured):
    folder, text = measured
    for pattern in (
        r"Matrix product, float32, best of several: [\d.,]+ at 64, ",
        r"\[1/7\] variants, encapnet_least: \d+ s\n",
        r"encapnet_least +train +4 +[\d,]+ +[\d,]+ to [\d,]+ +[\d,]+ +"
        r"[\d.]+ +\d+% +\d+% +[\d.]+ +[\d.]+\n",
        r"encapnet_least +train without +4 +[\d.,]+ +[\d.,]+ to [\d.,]+\n",
        r"ratio, round by round: [\d.]+, quartiles [\d.]+ to [\d.]+\)\n",
        r"7×7/2 4→8 on 16×16 +backward +2 ",
        r"strong +4 +[\d,]+ +[\d,]+ to [\d,]+\n",
        r"log +value and gradient +8 +[\d.]+ +[\d.]+ to [\d.]+\n",
        r"batch: images +-?[\d.]+ +[\d.]+ +1: [\d.,]+ \([\d.,]+ to ",
    ):
        assert re.search(pattern, text), pattern
    for file in ("benchmark.json", "benchmark.csv", "benchmark.png"):
        assert f"{folder / file}" in text


def test_the_csv_file_has_a_row_for_every_measurement(measured):
    with (measured[0] / "benchmark.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = read_results(measured[0] / "benchmark.json").measurements
    assert len(rows) == len(found)
    for row, m in zip(rows, found, strict=True):
        assert float(row["ms"]) == pytest.approx(1000 * m.time.median)
        assert int(row["rounds"]) == len(m.seconds)


def test_the_picture_has_a_panel_for_every_part(measured, tmp_path):
    assert size_of(measured[0] / "benchmark.png") == (1612, 1768)
    stored = read_results(measured[0] / "benchmark.json")
    for part, size in (("solver", (806, 442)), ("variants", (1612, 884))):
        alone = dataclasses.replace(
            stored, measurements=tuple(stored.of_part(part))
        )
        path = tmp_path / f"{part}.png"
        plots.draw(alone, path)
        assert size_of(path) == size


def test_a_run_compared_with_itself_is_the_same(measured):
    stored = read_results(measured[0] / "benchmark.json")
    comparison = compare(stored, stored)
    assert {c.verdict for c in comparison.changes} == {"same"}
    assert len(comparison.changes) == len(stored.measurements)


def test_figures_of_known_times():
    m = measurement(
        seconds=(4.0, 1.0, 2.0, 3.0, 5.0),
        product_seconds=(0.5, 0.25, 0.5, 0.5, 0.5),
        images=12, multiply_adds=3 * 10**9,
    )  # fmt: skip
    assert m.time == (2.0, 3.0, 4.0)
    assert m.images_per_second == (3.0, 4.0, 6.0)
    assert m.gflops == (1.5, 2.0, 3.0)
    # Round by round: 8, 4, 4, 6, 10.
    assert m.cost == (4.0, 6.0, 8.0)
    # The best product: 2·1000³ operations in 0.1 s, or 2·1024³ in 0.25 s.
    run = results(m)
    assert run.peak_gflops == pytest.approx(20.0)
    assert run.share_of_peak(m) == pytest.approx(0.1)
    assert m.share_in_turn == pytest.approx(
        [3 * 10**9 / 1024**3 / cost for cost in (8, 6, 4)]
    )
    (row,) = csv_rows(run)
    assert row["ms"] == 3000.0
    assert row["share_of_peak"] == pytest.approx(0.1)
    text = tables(run)
    assert "10%" in text
    assert "of peak: over 20 GFLOP/s" in text
    alone = measurement()
    assert alone.gflops is alone.images_per_second is None
    assert alone.share_in_turn is None
    assert run.share_of_peak(alone) is None
    assert run.agreement_ratios == {}


def test_the_cost_of_units_is_a_ratio_within_rounds():
    def step(name, action, *seconds):
        return measurement(
            name=name, action=action, seconds=seconds, part="agreement"
        )

    found = results(
        step("one", WITH_UNITS, 1.2, 24.0, 3.9),
        step("one", WITHOUT_UNITS, 1.0, 20.0, 3.0),
        step("other", WITH_UNITS, 2.0, 2.0, 2.0),
        step("other", WITHOUT_UNITS, 1.0, 1.0, 1.0),
    )
    assert found.agreement_ratios == {
        "one": pytest.approx([1.2, 1.2, 1.3]),
        "other": [2.0, 2.0, 2.0],
    }
    text = tables(found)
    assert "one: ratio, round by round: 1.20, quartiles 1.20 to 1.25)" in text
    assert "other: ratio, round by round: 2.00" in text


def test_units_are_left_out_of_the_same_network(monkeypatch):
    made = []

    def network(recipe):
        made.append(recipe.network())
        return {"train": lambda: None}

    monkeypatch.setattr(benchmark_calls, "network", network)
    child.measure_agreement("encapnet14_authors_master", 2, 0.0)
    whole = VARIANTS["encapnet14_authors_master"]
    assert made == [whole, override(whole, agreement="none")]
    assert made[0] != made[1]


def test_calls_take_turns_in_changing_order():
    made = []
    calls = {name: functools.partial(made.append, name) for name in "abc"}
    times = interleaved_seconds(calls, 0.0, least_rounds=4)
    assert [len(times[name]) for name in "abc"] == [4, 4, 4]
    rounds = ["".join(made[n : n + 3]) for n in range(0, 15, 3)]
    assert made[15:] == []
    assert rounds[0] == "abc"  # to warm up
    assert {"".join(sorted(order)) for order in rounds} == {"abc"}
    assert len(set(rounds)) > 2


def test_aides_have_the_paper_s_shapes():
    ((name, (layer, maps)),) = benchmark_calls.aides("encapnet6").items()
    assert name == "7×7/2 256→512 on 8×8"
    assert maps == (8, 8, 256)
    assert layer.compute_output_shape((1, *maps)) == (1, 4, 4, 512)
    assert benchmark_calls.aides("encapnet6_master") == {}


def test_a_timed_gradient_is_the_convolution_s():
    """The last entries of the gradients, each by a difference of values."""
    layer = GroupedConv2D(4, 3, 2, skip_own_block=2)
    call = benchmark_calls.convolution(layer, (1, 5, 5, 2))["backward"]
    maps = benchmark_calls._random(1, 5, 5, 2).numpy()
    upstream = benchmark_calls._random(1, 1, 3, 3, 4).numpy()[0]
    kernel, bias = layer.get_weights()

    def value(maps, kernel, bias):
        layer.set_weights([kernel, bias])
        return float(np.sum(layer(maps).numpy() * upstream, dtype=np.float64))

    wanted, start = 0.0, value(maps, kernel, bias)
    for number in range(3):
        moved = [maps.copy(), kernel.copy(), bias.copy()]
        # Linear in each: any step does.
        moved[number].flat[-1] += 1.0
        wanted += value(*moved) - start
    layer.set_weights([kernel, bias])
    assert call() == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_a_fit_finds_the_exponent(exponent):
    sizes = np.array([3, 5, 17, 100])
    fit = fit_exponent(sizes, 0.01 * sizes[:, None] ** exponent * [1, 3])
    assert fit.exponent == pytest.approx(exponent, abs=1e-12)
    assert fit.standard_error == pytest.approx(0, abs=1e-12)


def test_the_standard_error_is_that_of_a_regression():
    rng = np.random.default_rng(0)
    sizes = np.array([32, 64, 128, 256, 512])
    seconds = 0.001 * sizes**1.2 * rng.lognormal(0, 0.1, 5)
    fit = fit_exponent(sizes, seconds[:, None] * [1, 2, 3])
    wanted = stats.linregress(np.log(sizes), np.log(seconds))
    assert fit.exponent == pytest.approx(wanted.slope)
    assert fit.standard_error == pytest.approx(wanted.stderr)
    assert abs(fit.exponent - 1.2) < 3 * fit.standard_error


def test_medians_on_a_line_do_not_hide_rounds_that_differ():
    """Exponents 0, 1 and 2 in the three rounds."""
    sizes = np.array([1, 2, 4])
    fit = fit_exponent(sizes, np.stack([sizes**n for n in (0, 1, 2)], axis=1))
    assert fit.exponent == pytest.approx(1)
    assert fit.standard_error == pytest.approx(stats.sem([0, 1, 2]))


def test_growths_are_fitted_by_their_medians():
    found = [
        measurement(name, size=n, seconds=(n**p, n**p, 99), part="growth")
        for name, p in (("batch", 1), ("width", 2))
        for n in (1, 2, 4)
    ]
    fits = fit_growths(found)
    assert fits["batch"].exponent == pytest.approx(1)
    assert fits["width"].exponent == pytest.approx(2)


def test_only_what_is_named_grows():
    def network(name, size):
        return make_recipe(GROWTHS[name].case(size)).network()

    batch = [GROWTHS["batch"].case(n)["batch_size"] for n in (64, 128)]
    assert batch == [64, 128]
    assert network("batch", 64) == network("batch", 128)
    plain = VARIANTS["encapnet_small"]
    assert network("width", plain.num_capsules) == plain
    wide = network("width", 64)
    assert (wide.num_capsules, wide.stem) == (64, ((128, 2),))
    assert network("depth", 1) == plain
    assert network("depth", 8).type2_layers == (8, 8, 8)
    assert GROWTHS["iterations"].case(8)["num_iterations"] == 8
    for growth in GROWTHS.values():
        assert len(set(growth.sizes)) >= 3


def test_two_sizes_do_not_make_an_exponent():
    with pytest.raises(ValueError, match=r"Received: sizes=\[2, 2, 4\]"):
        fit_exponent([2, 2, 4], [[1, 1], [1, 1], [2, 2]])


STEADY = (1.0, 1.01, 0.99, 1.0, 1.0)
NOISY = (0.6, 0.8, 1.0, 1.3, 1.9)


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (STEADY, 1.2, "slower"),
        (STEADY, 1 / 1.2, "faster"),
        # Outside of the spread, but not by much.
        (STEADY, 1.05, "same"),
        (STEADY, 1 / 1.05, "same"),
        # By much, but within the spread.
        (NOISY, 1.2, "same"),
        (NOISY, 1 / 1.2, "same"),
        (NOISY, 2.0, "slower"),
        (NOISY, 1 / 2.0, "faster"),
    ],
)
def test_a_change_counts_beyond_the_spread_and_a_tenth(before, now, verdict):
    base = results(measurement(seconds=before))
    later = results(measurement(seconds=tuple(now * s for s in before)))
    (change,) = compare(base, later).changes
    assert change.ratio == pytest.approx(now)
    assert change.verdict == verdict


def test_a_slower_machine_is_no_slower_software():
    base = results(measurement(seconds=STEADY, product_seconds=STEADY))
    twice = tuple(2 * s for s in STEADY)
    later = results(measurement(seconds=twice, product_seconds=twice))
    (change,) = compare(base, later).changes
    assert change.verdict == "same"
    assert change.ratio == pytest.approx(1)


def test_what_only_one_run_measured_is_named():
    base = results(measurement("kept"), measurement("gone", seconds=(9.0,)))
    later = results(measurement("kept", seconds=(2.0,)), measurement("added"))
    comparison = compare(base, later)
    assert [c.key.name for c in comparison.changes] == ["kept"]
    text = comparison_text(base, later, comparison)
    assert re.search(r"slower +variants: kept, train, 8 +2\.00", text)
    assert "0 of 1 the same" in text
    assert "Not measured now: variants: gone, train, 8." in text
    assert "Not in the stored run: variants: added, train, 8." in text


def test_a_busy_round_is_no_slower_software():
    """The last three rounds take four times as long, everything in them."""
    base = results(measurement(seconds=STEADY, product_seconds=STEADY))
    busy = tuple(s * f for s, f in zip(STEADY, (1, 1, 4, 4, 4), strict=True))
    later = results(measurement(seconds=busy, product_seconds=busy))
    (change,) = compare(base, later).changes
    assert change.ratio == pytest.approx(1)


def test_few_of_many_are_named():
    base = results(*(measurement(f"net{n}") for n in range(9)))
    later = results(measurement("net0"))
    text = comparison_text(base, later, compare(base, later))
    assert "net5, train, 8; 3 more." in text
    assert "net6" not in text


def test_runs_with_nothing_in_common_are_refused():
    base = results(measurement("one"))
    with pytest.raises(ValueError, match="Received: 1 other measurements"):
        compare(base, results(measurement("other")))


def answering(*seconds, failed=()):
    """Stands in for the process that measures."""

    def ask(task):
        if task["part"] == "products":
            return {"products": {64: [0.5]}}
        if task["part"] in failed:
            return {"failed": "died", "reason": "killed (SIGKILL)"}
        found = measurement(
            "none", "read", part=task["part"], seconds=seconds, images=8
        )
        return {"measurements": [dataclasses.asdict(found)]}

    return ask


@pytest.mark.parametrize(
    ("seconds", "code", "word"),
    [(1.0, 0, "1 of 1 the same"), (2.0, 1, "slower"), (0.5, 0, "faster")],
)
def test_only_what_is_slower_ends_with_exit_code_1(
    tmp_path, capsys, seconds, code, word
):
    stored = tmp_path / "stored.json"
    found = measurement("none", "read", part="pipeline", images=8)
    write_results(results(found), stored)
    answer = run(
        "--parts=pipeline", f"--compare={stored}", f"--out={tmp_path}",
        ask=answering(seconds),
    )  # fmt: skip
    assert answer == code
    assert word in capsys.readouterr().out


def test_a_failure_is_named_and_the_rest_is_measured(tmp_path, capsys):
    code = run(
        "--parts=pipeline,solver", f"--out={tmp_path}",
        ask=answering(1.0, failed=["pipeline"]),
    )  # fmt: skip
    assert code == 1
    error = capsys.readouterr().err
    assert error == "error: Not measured: pipeline. killed (SIGKILL)\n"
    (found,) = read_results(tmp_path / "benchmark.json").measurements
    assert found.part == "solver"


def test_a_stopped_benchmark_keeps_what_it_has(tmp_path, capsys):
    answer = answering(1.0)

    def ask(task):
        if task["part"] == "solver":
            raise KeyboardInterrupt
        return answer(task)

    assert run("--parts=pipeline,solver", f"--out={tmp_path}", ask=ask) == 1
    assert f"Stopped; what was measured is in {tmp_path}" in (
        capsys.readouterr().out
    )
    (found,) = read_results(tmp_path / "benchmark.json").measurements
    assert found.part == "pipeline"


def test_without_a_matrix_product_nothing_is_measured(tmp_path):
    ask = answering(1.0, failed=["pipeline"])
    with pytest.raises(ValueError, match=r"Received: killed \(SIGKILL\)"):
        run(
            "--parts=pipeline", f"--out={tmp_path}",
            ask=lambda task: ask(task | {"part": "pipeline"}),
        )  # fmt: skip


def test_a_process_that_dies_is_a_failure(monkeypatch):
    dying = (sys.executable, "-c", "raise SystemExit(3)")
    monkeypatch.setattr(benchmark, "COMMAND", dying)
    answer = benchmark.ask_process({"part": "solver"})
    assert answer["reason"] == "its process ended with code 3"


def test_trouble_while_measuring_is_an_answer():
    answer = Measurer().answer({"part": "solver", "batches": [0]})
    assert answer["failed"] == "TypeError"
    assert "seconds" in answer["reason"]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "{}",
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [1]}, "measurements": [{"part": "solver"}]}',
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [-1]}, "measurements": []}',
        '{"machine": "m", "versions": {}, "settings": {}, "load_per_core": 0,'
        ' "products": {"8": [1]}, "measurements": [{"part": "solver",'
        ' "seconds": [1, 2], "product_seconds": [1]}]}',
    ],
)
def test_a_damaged_file_is_refused_before_anything_is_measured(tmp_path, text):
    path = tmp_path / "stored.json"
    path.write_text(text)
    message = f"benchmark.json of an earlier run. Received: {path}"
    with pytest.raises(ValueError, match=re.escape(message)):
        run(f"--compare={path}", ask=pytest.fail)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--compare=nowhere.json", "Received: nowhere.json (FileNotFound"),
        ("--parts=speed", "Received: parts='speed'"),
        ("--parts=", "Received: parts=[]"),
        ("--variants=", "variants=[]"),
        ("--variants=encapnet_smal", "Did you mean 'encapnet_small'?"),
        ("--batch=0", "batch=0"),
        ("--seconds=-1", "seconds=-1"),
        ("parts", "Received: parts"),
    ],
)
def test_mistakes_are_refused_by_name(tmp_path, flag, message):
    with pytest.raises((ValueError, flags.Error), match=re.escape(message)):
        run(flag, f"--out={tmp_path}", ask=pytest.fail)


@pytest.mark.parametrize(
    ("flag", "what"),
    [
        ("--variants=cnn_same_shape", "cnn_same_shape at batch 64"),
        ("--parts=growth", "encapnet_small at batch 1024"),
    ],
)
def test_a_network_that_does_not_fit_is_refused(
    tmp_path, monkeypatch, flag, what
):
    little = Memory(2**20, "on this machine")
    monkeypatch.setattr(tasks, "available_memory", lambda: little)
    with pytest.raises(ValueError, match=f"Received: {what}. It does not fit"):
        run(flag, f"--out={tmp_path / 'new'}", ask=pytest.fail)
    assert not (tmp_path / "new").exists()


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "trainers.benchmark", *arguments],
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_program_measures_in_processes_of_its_own(tmp_path):
    done = program(
        "--variants=encapnet_tiny", "--parts=variants", "--batch=8",
        "--seconds=0.1", f"--out={tmp_path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"encapnet_tiny +train +8 ", done.stdout)
    train, _ = read_results(tmp_path / "benchmark.json").measurements
    # So small a network takes little beside the graph of its step.
    assert 0.4 < train.memory_bytes / train.counted_bytes < 2.5


@pytest.mark.slow
def test_a_damaged_file_is_one_line_and_exit_code_2(tmp_path):
    path = tmp_path / "stored.json"
    path.write_text("{")
    done = program(f"--compare={path}", f"--out={tmp_path}")
    assert done.returncode == 2
    assert done.stderr.startswith("error: A stored benchmark is the")
    assert done.stderr.count("\n") == 1
    assert not done.stdout
