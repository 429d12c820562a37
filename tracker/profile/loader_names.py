"""Ranges in which a training loop waits for its next batch, by their names: one list for all frameworks.

| range | written by |
|---|---|
| `enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__` | PyTorch, torch/utils/data/dataloader.py |
| `enumerate(DataPipe)#BatcherIterDataPipe` | PyTorch, torch/utils/data/datapipes/_hook_iterator.py |
| `[pl][profile][_TrainingEpochLoop].train_dataloader_next` | Lightning, loops/training_epoch_loop.py |
| `[pl][profile][_EvaluationLoop].val_next` | Lightning, loops/evaluation_loop.py; `test_next` and others alike |
| `## next_batch ##`, `## load_batch 3 ##` | TorchRec, distributed/train_pipeline |
| `batch-generator`, `get_batch` | Megatron-LM, pretrain_gpt.py |
| `dataloader_next`, `data_loading`, `DataLoader`, `load_data`, `fetch_batch` | scripts, for want of any of these |

Paddle and MindSpore say of each event itself that it reads data; see `Extras.op_phase`. A team adds its own names in
the settings, `[readers] loaders`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# `get_batch_size` and `next_batch_norm` are no loaders
_NO_BATCH: Final = r"(?!size_|norm_|index_|idx_|stats_|balance_)"
_LOADER: Final = re.compile(
    "_(?:"
    "enumerate_data_?[a-z]+|[a-z]*data_?load(?:er|ers|ing)|data_?load|load_data|loaddata|fetch_data|fetchdata"
    "|data_?batch|(?:next|get|fetch|prefetch|load)_?batch(?:es)?|batch_?generator"
    f")_{_NO_BATCH}"
)
_LIGHTNING: Final = re.compile(r"\]\.(?:sanity_check|val|validate|test|predict)_next$")


def is_loader(name: str, own_names: Sequence[str] = ()) -> bool:
    """Return whether a range of this name is one in which a training loop waits for its next batch.

    own_names: what a team's own ranges hold in their names, whatever the case.

    >>> [is_loader(name) for name in ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", "## next_batch ##")]
    [True, True]
    >>> [is_loader(name) for name in ("DATALOADER_WAIT", "get_batch_size", "upload data", "target_batch")]
    [True, False, False, False]
    >>> is_loader("Feeder.pull"), is_loader("Feeder.pull", ["feeder."])
    (False, True)
    """
    words = "_".join(word.lower() for word in _WORD.findall(name))
    if _LOADER.search(f"_{words}_") or _LIGHTNING.search(name):
        return True
    return any(own.lower() in name.lower() for own in own_names)
