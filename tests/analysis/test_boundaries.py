import pytest

from scripts.lib.analysis.points.boundaries import find_boundaries
from scripts.lib.analysis.summary import PointRow


def row(level, passed, kind="concurrency", variant="a"):
    return PointRow(
        variant=variant,
        stamp="",
        workload="w",
        kind=kind,
        level=level,
        runs=1,
        sent=1,
        completed=1,
        valid=True,
        invalid_reasons=[],
        warnings=[],
        metrics={},
        slo_pass=passed,
        slo_failed=[],
        sources=[],
    )


@pytest.mark.parametrize(
    ("levels", "last", "first", "words"),
    [
        ({8: True, 32: True, 36: False}, 32, 36, "passes up to 32, fails at 36"),
        ({36: False, 8: True, 32: True}, 32, 36, "passes up to 32, fails at 36"),
        ({1: True, 8: True}, 8, None, "passes up to 8, the highest load measured"),
        (
            {1: True, 4: True, 8: None},
            4,
            None,
            "passes up to 4, the highest load that could be judged; could not be judged at 8",
        ),
        ({4: False, 8: False}, None, 4, "fails already at 4, the lowest load measured"),
        (
            {1: None, 4: False},
            None,
            4,
            "fails already at 4, the lowest load that could be judged; could not be judged at 1",
        ),
        (
            {1: True, 4: False, 8: True, 16: False},
            1,
            4,
            "passes up to 1, fails at 4; passes again at 8, which does not count",
        ),
        (
            {1: True, 4: None, 8: False},
            1,
            8,
            "passes up to 1, fails at 8; could not be judged at 4",
        ),
        ({1: None, 4: None}, None, None, "not judged at any load"),
    ],
)
def test_words(levels, last, first, words):
    (boundary,) = find_boundaries([row(level, passed) for level, passed in levels.items()])
    assert (boundary.last_pass, boundary.first_fail) == (last, first)
    assert boundary.words == words


def test_rates_have_a_unit():
    (boundary,) = find_boundaries([row(0.5, True, "rate"), row(2.0, False, "rate")])
    assert boundary.words == "passes up to 0.5 req/s, fails at 2 req/s"


def test_ramps_have_no_boundary_and_variants_do_not_mix():
    rows = [row(0, True, "ramp"), row(1, True, variant="a"), row(1, False, variant="b")]
    found = {b.variant: b.last_pass for b in find_boundaries(rows)}
    assert found == {"a": 1, "b": None}
