"""The order of all tests, in how many processes, and how long Hypothesis lets an example take."""

import os
from pathlib import Path

from hypothesis import settings

WORKFLOW = Path(__file__).parent / "workflow"

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


def pytest_xdist_auto_num_workers():
    """Return what ``-n auto`` means: one more than there are cores, as many tests only wait."""
    return min(len(os.sched_getaffinity(0)), 4) + 1


def pytest_collection_modifyitems(items):
    """Run the longest first: what is left at the end is small enough to share out evenly."""
    items.sort(key=lambda item: WORKFLOW not in item.path.parents)
