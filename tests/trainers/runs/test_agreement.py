import pytest

from trainers.runs.agreement import (
    collapse_notes,
    collapses,
    summarise_units,
    unit_names,
)

UNIT, OTHER = "module1_agreement_input", "module2_agreement_type1"


def row(epoch, spread, other=1.0, **more):
    found = {"epoch": epoch, "loss": 1.0, "class_loss": 0.5}
    for unit, value in ((UNIT, spread), (OTHER, other)):
        found |= {
            f"{unit}_loss": 0.2,
            f"{unit}_spread": value,
            f"{unit}_zero_vectors": 0.75,
            f"{unit}_gradient_share": 0.3,
        }
    return found | more


HISTORY = [row(1, 0.7), row(2, 0.04), row(3, 0.2), row(4, 0.01, other=0.05)]


def test_units_are_found_in_a_row():
    assert unit_names(HISTORY[0]) == [UNIT, OTHER]
    assert unit_names({"epoch": 1, "loss": 0.3, "class_loss": 0.3}) == []


def test_a_unit_has_collapsed_from_its_first_such_epoch_on():
    assert collapses(HISTORY) == {UNIT: 2, OTHER: 4}
    assert collapses(HISTORY[:1]) == {}


def test_a_collapse_is_said_once_in_the_epoch_it_happens():
    said = [collapse_notes(HISTORY[:epoch]) for epoch in (1, 2, 3, 4)]
    assert [len(notes) for notes in said] == [0, 1, 0, 1]
    (note,) = said[1]
    assert note.startswith(f"Agreement unit {UNIT} has collapsed: ")
    assert "4.0% of the spread it began with" in note
    assert "75% of the vectors are zero" in note
    assert OTHER in said[3][0]


def test_the_summary_has_the_last_numbers_and_the_collapse():
    assert summarise_units(HISTORY[:3]) == {
        UNIT: {"loss": 0.2, "spread": 0.2, "zero_vectors": 0.75,
               "gradient_share": 0.3, "collapsed_in_epoch": 2},
        OTHER: {"loss": 0.2, "spread": 1.0, "zero_vectors": 0.75,
                "gradient_share": 0.3, "collapsed_in_epoch": None},
    }  # fmt: skip


@pytest.mark.parametrize("look", [collapses, collapse_notes])
def test_runs_of_earlier_versions_tell_nothing(look):
    assert not look([{"epoch": 1, f"{UNIT}_loss": 0.0}])
