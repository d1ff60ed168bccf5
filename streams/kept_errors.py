"""Errors that are kept, or raised more than once.

The traceback of an error refers to the frames that it has passed, and so to all of their variables. An error that
is kept must not refer to them: they would stay in memory, and each further raise would add to them. If one of the
frames refers to the error, this is a reference cycle, which only the garbage collector finds.
"""

from typing import TypeVar

from streams.wire.errors import ServiceError

E = TypeVar("E", bound=BaseException)


def stripped(error: E) -> E:
    """Return `error`, which has been raised and is going to be kept, without its traceback and its causes.

    The causes lose their tracebacks, too: one of their frames may refer to its error.
    """
    for cause in _with_causes(error):
        cause.__traceback__ = None
    error.__cause__ = error.__context__ = None
    return error


def _with_causes(error: BaseException) -> list[BaseException]:
    """Return an error, what it was raised from, and what was being handled then, each with its own causes."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is not None and all(cause is not other for other in found):
            found.append(cause)
            waiting += [cause.__cause__, cause.__context__]
    return found


def copy_of(error: E) -> E:
    """Return a copy of an error that is kept, to be raised, so that nothing but its handlers refers to it."""
    copy = type(error).__new__(type(error), *error.args)
    copy.__dict__.update(error.__dict__)
    if isinstance(copy, ServiceError):
        copy.extra = dict(copy.extra)  # Those who handle it may add to it.
    copy.__cause__, copy.__context__ = error.__cause__, error.__context__
    copy.__suppress_context__ = error.__suppress_context__
    return copy
