"""The types of what requests say: checked once, here, and published in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from archivist.clock import from_text
from archivist.core.blocks import MOST_ID
from archivist.errors import InputError
from archivist.records.layers import NAME_CHARACTERS, TITLE_CHARACTERS, VALUE_CHARACTERS
from archivist.records.lesson import LONGEST_CHARACTERS
from archivist.store.filters import MOST_ASKED
from archivist.text import replace_surrogates

# Far below Python's recursion limit of 1,000, which the encoders reach with deeper values.
_MAX_DEPTH = 64
# The largest number, also of a cycle, that a request may name.
LARGEST = (1 << 31) - 1
# SQLite's integers have 64 bits with the sign.
_INT_BITS = 63


# A float without a fraction is read as an integer: JSON does not distinguish 3.0 from 3.
Whole = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
# The word of an enumeration, which strict models would take from Python alone.
Enumerated = Field(strict=False)
Said = Annotated[str, Field(min_length=1, max_length=VALUE_CHARACTERS, pattern=r"\S")]
Planned = Annotated[str, Field(min_length=1, max_length=TITLE_CHARACTERS, pattern=r"\S")]
Note = Annotated[str, Field(max_length=VALUE_CHARACTERS)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
# What a lesson says, and what it tells to do.
Summary = Annotated[str, Field(min_length=1, max_length=LONGEST_CHARACTERS, pattern=r"\S")]
Rule = Annotated[str, Field(max_length=LONGEST_CHARACTERS)]
# A name of core memory.
Role = Annotated[str, Field(max_length=MOST_ID, pattern=r"^[^:\n\r]*$", description="On one line, no colon.")]
NESTED = f"An object at most {_MAX_DEPTH} levels deep, with whole numbers of at most 64 bits."
Title = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS, pattern=r"\S")]
Word = Annotated[str, Field(max_length=NAME_CHARACTERS)]
Words = Annotated[Sequence[Word], Field(max_length=100)]
AskedWords = Annotated[Sequence[Word], Field(max_length=MOST_ASKED)]
Count = Annotated[int, Field(ge=0, le=LARGEST), Whole]
Numbers = Annotated[Sequence[Count], Field(max_length=100)]
References = Annotated[Sequence[Annotated[int, Field(ge=1, le=LARGEST), Whole]], Field(max_length=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[int, Field(ge=1, le=10), Whole]
Ended = Literal["success", "partial", "failed", "aborted"]

Id = Annotated[str, Path(min_length=1, max_length=400, description="An id.")]
Sought = Annotated[str, Query(min_length=1, max_length=4_000, pattern=r"\S", description="Plain words.")]
Matched = Annotated[str, Query(max_length=4_000, description="Best matches of these words first.")]
Only = Annotated[str, Query(max_length=400)]
Cycle = Annotated[int | None, Query(ge=0, le=LARGEST)]
Tags = Annotated[tuple[str, ...], Query(max_length=MOST_ASKED)]


def _parse_time(value: Any) -> datetime:
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        raise ValueError("expected an ISO 8601 time")
    try:
        return from_text(value)
    except OverflowError:
        raise ValueError("a time beyond the calendar") from None


Moment = Annotated[
    datetime, BeforeValidator(_parse_time), WithJsonSchema({"type": "string", "format": "date-time"})
]
Since = Annotated[Moment | None, Query(description="Only from this time on, ISO 8601.")]
Until = Annotated[Moment | None, Query(description="Only up to this time, ISO 8601.")]


class Body(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    def provided_fields(self) -> dict[str, Any]:
        """Return the fields that were given and are not null."""
        return {
            name: value for name, value in self.model_dump(exclude_unset=True).items() if value is not None
        }


def clean_json(value: object, depth: int = 0) -> Any:
    """Return a JSON value that can be stored and returned unchanged, or refuse it."""
    if depth > _MAX_DEPTH:
        raise InputError("the value is nested too deeply", hint=f"at most {_MAX_DEPTH} levels")
    match value:
        case dict():
            return {replace_surrogates(key): clean_json(item, depth + 1) for key, item in value.items()}
        case list():
            return [clean_json(item, depth + 1) for item in value]
        case str():
            return replace_surrogates(value)
        case float() if value != value or value in (float("inf"), float("-inf")):
            raise InputError("NaN and Infinity are not JSON numbers", hint="send null or a text")
        case int() if value.bit_length() > _INT_BITS:
            raise InputError("a number has more than 64 bits", hint="send it as a text")
    return value
