from .judging import judge
from .vote import change_points

__all__ = ["change_points", "judge"]
