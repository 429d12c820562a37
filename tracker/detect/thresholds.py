"""What counts as a change: every constant of the judgement in one struct, with the defaults."""

from __future__ import annotations

from msgspec import Struct

from tracker.units import counted


class Thresholds(Struct, frozen=True):
    """Limits of the judgement. Ratios and shares are parts of one (0.03 = 3 %); runs are counts.

    `*_host`: where the operators of a run are timed on the host; `*_device`: on the device, whose clock is steadier.
    """

    window: int = 8
    """Runs of the current level that a version is compared with, the newest first."""
    look_back: int = 32
    """Runs before a version among which the runs of a level are looked for."""
    least_base: int = 3
    """Runs of a level without which there is no test."""
    least_new: int = 2
    """New runs that decide; one run of a version makes a suspect."""
    confirm: int = 2
    """Runs that confirm a suspect, where versions have one run each."""
    alpha: float = 0.05
    """False discovery rate."""
    ratio: float = 0.03
    """Smallest change of a series."""
    ratio_communication: float = 0.10
    ratio_step_host: float = 0.05
    ratio_step_device: float = 0.02
    """Smallest change of the step and of its parts."""
    floor: float = 0.001
    """Smallest contribution of a series to the change of the step, as a share of it."""
    floor_part_host: float = 0.02
    floor_part_device: float = 0.01
    """The same of idle time, data loading, exposed communication, phases and modules."""
    tested: float = 0.0001
    """Share of the step below which a series is not tested."""
    gradual_ratio: float = 0.08
    """Gradual slowdown against the first runs of a level."""
    alpha_suspect: float = 0.02
    """The same of suspects that are judged together: every version of one run is another look at a level."""
    alpha_gradual: float = 0.005
    """The same of gradual slowdowns, which every version looks for."""
    least_gradual: int = 4
    """Newest runs that show a gradual slowdown."""
    gate_net: float = 0.01
    """Net slowdown of the operators of a version, as a share of the step, at which a gate fails; and share of new and
    removed operators in a change of the step that makes it no drift."""
    gate_peak: float = 0.10
    """Rise of peak memory at which a gate fails."""
    least_leaves: int = 20
    """Operators that every compared run needs for a common-mode shift, and series that a family needs to share its
    variance."""
    explained: float = 0.5
    """Part of a change of the step that changed operators and the first wait must make up where drift hides it."""
    unchanged_errors: float = 1.9
    """Standard errors that a change stays away from its limit to be called UNCHANGED."""

    def runs_needed(self, base_runs: int, new_runs: int) -> str:
        """What a verdict lacks, in words; "" where both sides have enough runs.

        >>> DEFAULTS.runs_needed(2, 2)
        'a verdict needs 1 more run of the baseline'
        """
        lacks = {"baseline": self.least_base - base_runs, "candidate": self.least_new - new_runs}
        words = [f"{counted(count, 'more run')} of the {side}" for side, count in lacks.items() if count > 0]
        return f"a verdict needs {' and '.join(words)}" if words else ""


DEFAULTS = Thresholds()
