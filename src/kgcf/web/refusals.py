"""What is answered instead of a page: a true status, a sentence, and a way on."""

from dataclasses import dataclass, field

from kgcf.errors import DataError, KgcfError, SettingsError, StorageError, UnknownNameError
from kgcf.web.background import RunningError
from kgcf.web.lane import BusyError, TooLongError
from kgcf.web.review.store import ConflictError

TITLES = {
    400: "That cannot be read",
    401: "Who are you?",
    403: "Not from there",
    404: "Nothing here",
    405: "Not that way",
    409: "Look again",
    413: "Too large",
    421: "Wrong address",
    422: "That cannot be asked",
    431: "Too long",
    500: "Something broke",
    503: "One moment",
}
_STATUS: tuple[tuple[type[KgcfError], int], ...] = (
    (UnknownNameError, 404),
    (ConflictError, 409),
    (RunningError, 409),
    (BusyError, 503),
    (TooLongError, 503),
    (StorageError, 503),
    (SettingsError, 422),
    (DataError, 422),
)


@dataclass(frozen=True)
class Suggestion:
    """Something that may have been meant."""

    kind: str  # entity or relation
    label: str
    name: str
    address: str


@dataclass(frozen=True)
class Refused:
    """The answer to a request that cannot be met; the JSON of every error."""

    status: int
    error: str  # a sentence that says what to do
    suggestions: tuple[Suggestion, ...] = field(default=())


class RefusalError(KgcfError):
    """A request that is refused."""

    def __init__(self, status: int, sentence: str, suggestions: tuple[Suggestion, ...] = ()) -> None:
        super().__init__(sentence)
        self.refused = Refused(status, sentence, suggestions)


def refused_by(error: KgcfError) -> Refused:
    """The status that fits an error of the library."""
    if isinstance(error, RefusalError):
        return error.refused
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 422)
    return Refused(status, str(error))
