"""How often a module was called: its frames, counted per step."""

from tests.timeline.made_events import Made
from tracker.profile import MODULE_CALLS


def test_calls_of_modules_are_counted_by_their_frames_in_the_step_in_which_they_start():
    made = Made()
    made.step(1, 0, 100)
    made.step(2, 100, 200)
    for start in (0, 100):
        made.frame("GPT_0", start + 10, start + 90, is_module=1)
        made.frame("Linear_0", start + 20, start + 30, is_module=1)
        made.frame("Linear_0", start + 40, start + 60, is_module=1)
        made.frame("forward", start + 41, start + 59)  # a frame of Python and no module
    made.op("aten::mm", 22, 28)
    table = made.built().tables["counter"]
    columns = ("step", "source", "name", "calls", "mean", "min", "max")
    assert list(zip(*(list(table[name]) for name in columns), strict=True)) == [
        (1, MODULE_CALLS, "GPT_0", 1, 80.0, 80.0, 80.0),
        (1, MODULE_CALLS, "GPT_0/Linear_0", 2, 15.0, 10.0, 20.0),
        (2, MODULE_CALLS, "GPT_0", 1, 80.0, 80.0, 80.0),
        (2, MODULE_CALLS, "GPT_0/Linear_0", 2, 15.0, 10.0, 20.0),
    ]


def test_a_second_device_of_the_process_does_not_count_them_again():
    made = Made()
    made.host_is_primary = False
    made.frame("GPT_0", 10, 90, is_module=1)
    made.kernel("gemm", 20, 30)
    assert list(made.built().tables["counter"]["name"]) == []
