from .connect import Store, open_engine, open_store, read_one_state
from .run_record import RunRecord
from .save import SavedRun, save_run, save_runs

__all__ = ["RunRecord", "SavedRun", "Store", "open_engine", "open_store", "read_one_state", "save_run", "save_runs"]
