"""T7 on the JSON schema test suite: a schema is enforced, or it is refused."""

from __future__ import annotations

import pytest

from tests.support import schemas

# Draft 7 ignores what stands beside `$ref`. A schema that does not say which draft it is of is
# read as 2020-12, where an `$id` beside `$ref` counts.
OTHER_DIALECT = {
    "draft2020-12": [],
    "draft7": [
        "ref.json: $ref prevents a sibling $id from changing the base uri: "
        "$ref resolves to /definitions/base_foo, data does not validate"
    ],
}


@pytest.mark.parametrize("draft", schemas.DRAFTS)
def test_no_document_that_breaks_its_schema_can_be_said(draft: str) -> None:
    """T7, B092: unsupported keywords are 400, never ignored."""
    try:
        folder = schemas.fetch()
    except schemas.Unreachable as reason:
        pytest.skip(f"the test suite cannot be fetched: {reason}")
    coverage = schemas.judge(folder / draft)
    assert coverage.wrong == OTHER_DIALECT[draft]
    assert coverage.counts["accepted and right"] > 200
