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

from tracker.profile.words import IDLE_RULES

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOINED: Final = re.compile(r"[_-]+")
_NO_LETTERS: Final = re.compile(r"[^a-z_]+")
# what is done with a loader, or is known of a batch, and is no waiting for it: save_dataloader_state, get_batch_size
_OTHER_WORK: Final = re.compile(
    r"(?<![a-z])(?:save|build|create|init|setup|make|reset|close|after|before|checkpoint|state|metadata|backward)(?![a-z])"
)
_OF_A_BATCH: Final = re.compile(
    r"batch(?:es)?_(?:size|norm|index|idx|stats|balance|logps|logprobs|loss|metrics|shape|dim)(?![a-z])"
)
_LOADER: Final = re.compile(
    r"(?<![a-z])(?:enumerate data[a-z_]*|[a-z]*data_?load(?:er|ers|ing)|(?:next|get|fetch|prefetch|load)_?batch(?:es)?)"
    r"(?![a-z])"
)
_WHOLE: Final = re.compile(r"(?:data_?load|load_?data|fetch_?data|data_?batch|batch_?generator)")
_LIGHTNING: Final = re.compile(r"\]\.(?:sanity_check|val|validate|test|predict)_next$")


def idle_rules_of(own_names: Sequence[str]) -> str:
    """Return the rules of a capture that is read with these names: its IDLE_SETTING.

    >>> idle_rules_of([]), idle_rules_of(["Pull", "feeder."])
    ('1', '1 with feeder., pull')
    """
    names = sorted({name.lower() for name in own_names})
    return f"{IDLE_RULES} with {', '.join(names)}" if names else IDLE_RULES


def is_loader(name: str, own_names: Sequence[str] = ()) -> bool:
    """Return whether a range of this name is one in which a training loop waits for its next batch.

    own_names: what a team's own ranges hold in their names, whatever the case.

    >>> [is_loader(name) for name in ("[pl][profile][_TrainingEpochLoop].train_dataloader_next", "## next_batch ##")]
    [True, True]
    >>> [is_loader(name) for name in ("DATALOADER_WAIT", "fetch_batch idx=3", "get_batch_size", "save_dataloader")]
    [True, True, False, False]
    >>> [is_loader(name) for name in ("load_data", "forward_data_batch", "target_batch", "upload data")]
    [True, False, False, False]
    >>> is_loader("Feeder.pull"), is_loader("Feeder.pull", ["feeder."])
    (False, True)
    """
    words = _JOINED.sub("_", _CAMEL.sub("_", name)).lower()
    plain = _NO_LETTERS.sub(" ", words).replace(" _", " ").replace("_ ", " ").strip(" _")
    if _LIGHTNING.search(name) or any(own.lower() in name.lower() for own in own_names):
        return True
    if _WHOLE.fullmatch(plain):
        return True
    is_other = _OTHER_WORK.search(plain.replace("_", " ")) is not None or _OF_A_BATCH.search(plain) is not None
    return _LOADER.search(plain) is not None and not is_other
