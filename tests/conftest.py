"""The order of all tests."""

from pathlib import Path

WORKFLOW = Path(__file__).parent / "workflow"


def pytest_collection_modifyitems(items):
    """Run the longest first: what is left at the end is small enough to share out evenly."""
    items.sort(key=lambda item: WORKFLOW not in item.path.parents)
