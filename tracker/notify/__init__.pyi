from .alarms import Alarm
from .delivering import Delivered, deliver, expire
from .enqueueing import alarm, enqueue

__all__ = ["Alarm", "Delivered", "alarm", "deliver", "enqueue", "expire"]
