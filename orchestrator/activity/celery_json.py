"""Values of plain Celery tasks, as Celery's own JSON serializer carries them: dates and decimals are marked."""

from __future__ import annotations

import json
from typing import Any

from kombu.utils import json as celery_json
from pydantic_core import PydanticSerializationError, to_jsonable_python

from orchestrator.errors import PayloadError


class _Encoder(celery_json.JSONEncoder):
    """Celery's encoder; what it does not know (dataclasses, models of a call) becomes plain JSON."""

    def default(self, o: Any) -> Any:
        try:
            return super().default(o)
        except TypeError:
            return to_jsonable_python(o)


def to_celery_json(value: Any, path: str) -> Any:
    """Returns a value as the plain JSON that Celery's serializer makes of it, type marks included.

    Raises:
        PayloadError: Celery could not send it either.
    """
    try:
        return json.loads(celery_json.dumps(value, cls=_Encoder))
    except (TypeError, ValueError, PydanticSerializationError) as error:
        raise PayloadError(path, f"can't be sent to a Celery task as JSON; pass plain data: {error}") from None


def from_celery_json(value: Any) -> Any:
    """Returns what Celery's serializer makes of the plain JSON of :func:`to_celery_json`."""
    return celery_json.loads(json.dumps(value))
