from .checkpoint import Checkpoint, ReadLine, resume
from .following import follow
from .normal import jumping_rows
from .state import State, older_in
from .tracked import Tracked, UserAction, dated_of
from .version_verdicts import VersionVerdicts
from .watched import Watched, WatchedRun, is_centred, watched_of

__all__ = [
    "Checkpoint",
    "ReadLine",
    "State",
    "Tracked",
    "UserAction",
    "VersionVerdicts",
    "Watched",
    "WatchedRun",
    "dated_of",
    "follow",
    "is_centred",
    "jumping_rows",
    "older_in",
    "resume",
    "watched_of",
]
