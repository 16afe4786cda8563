"""The JSON schema of a study file, generated from the models."""

from __future__ import annotations

from scripts.lib.base.files import ordered_json
from scripts.lib.study.models import Study


def study_schema() -> str:
    """Return the schema as JSON text, ending in a line break."""
    schema = Study.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A serving study"
    return ordered_json(schema)
