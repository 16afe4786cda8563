"""Turns answers that were compared by hand into ``quality.json``."""

from __future__ import annotations

import unicodedata

from scripts.lib.analysis.import_models import ImportQuestion, ImportStudy
from scripts.lib.quality.results import ItemResult, QualityResult

NOT_GIVEN = "only its similarity to the baseline's answer is given"


def import_quality(study: ImportStudy, variant: str) -> QualityResult | None:
    """Return the answers of one variant; None where the file holds none of it."""
    questions = {name: q for name, q in study.questions.items() if _mentions(q, variant)}
    if not questions:
        return None
    similarity = {
        name: q.similarity_to_baseline[variant]
        for name, q in questions.items()
        if variant in q.similarity_to_baseline
    }
    return QualityResult(
        variant=variant,
        items=[_item(name, question, variant) for name, question in questions.items()],
        probe_files={},
        settings={"source": study.source, "similarity_to_baseline": similarity},
    )


def _mentions(question: ImportQuestion, variant: str) -> bool:
    parts = (question.answers, question.passed, question.similarity_to_baseline)
    return any(variant in part for part in parts)


def _item(name: str, question: ImportQuestion, variant: str) -> ItemResult:
    answer = question.answers.get(variant)
    passed = question.passed.get(variant)
    reason = "graded by hand"
    if passed is None and answer is not None and question.expected is not None:
        passed = same_answer(answer, question.expected)
        reason = f'expected "{question.expected}"'
    if passed is None:
        reason = NOT_GIVEN if answer is None else "no expected answer is given"
    return ItemResult(
        id=name,
        axis=question.axis or name,
        task_success=passed,
        format_ok=None,
        tool_success=None,
        degenerate=False,
        reason=reason,
        text=answer or "",
    )


def same_answer(answer: str, expected: str) -> bool:
    """Return whether two short answers are the same number or the same words.

    Case, surrounding space, a final full stop and grouping commas do not matter.
    """
    first, second = _plain(answer), _plain(expected)
    numbers = (_number(first), _number(second))
    if None not in numbers:
        return numbers[0] == numbers[1]
    return first == second


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().strip().rstrip(".").strip()


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None
