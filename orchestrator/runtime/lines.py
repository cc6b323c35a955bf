"""Where in workflow code something was asked for, for error messages."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType

_OURS = (
    str(Path(__file__).parent.parent) + "/",
    str(Path(asyncio.__file__).parent) + "/",
)


def current_line() -> str:
    """Returns the innermost line of workflow code on the stack: ``file:line in function``, or empty."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS):
            return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"
        frame = frame.f_back
    return ""
