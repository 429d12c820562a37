"""Traces of Ascend profilers (trace_view.json of the frameworks, msprof_*.json of CANN) -> events in columns."""
