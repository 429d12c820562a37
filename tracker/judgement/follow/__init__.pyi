from .checkpoint import Checkpoint, resume
from .following import follow
from .normal import jumping_rows
from .tracked import Tracked, UserAction
from .version_verdicts import VersionVerdicts
from .watched import Watched, WatchedRun, is_centred, watched_of

__all__ = [
    "Checkpoint",
    "Tracked",
    "UserAction",
    "VersionVerdicts",
    "Watched",
    "WatchedRun",
    "follow",
    "is_centred",
    "jumping_rows",
    "resume",
    "watched_of",
]
