from .checkpoint import Checkpoint, resume
from .following import follow
from .normal import normal_runs
from .tracked import Tracked, UserAction
from .watched import Watched, WatchedRun, is_centred, watched_of

__all__ = [
    "Checkpoint",
    "Tracked",
    "UserAction",
    "Watched",
    "WatchedRun",
    "follow",
    "is_centred",
    "normal_runs",
    "resume",
    "watched_of",
]
