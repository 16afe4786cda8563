"""The order of all tests, and how long Hypothesis lets one example take."""

from pathlib import Path

from hypothesis import settings

WORKFLOW = Path(__file__).parent / "workflow"

settings.register_profile("busy machine", deadline=None)
settings.load_profile("busy machine")


def pytest_collection_modifyitems(items):
    """Run the longest first: what is left at the end is small enough to share out evenly."""
    items.sort(key=lambda item: WORKFLOW not in item.path.parents)
