"""Two models have many operators in common by name: their shapes and modules tell them from each other."""

from __future__ import annotations

import pytest

from tests.factories import save
from tracker.compare import diff
from tracker.compare.gates import gate_of_diff
from tracker.results import DiffOptions

NAMES = ("mm", "add", "mul", "copy_", "softmax", "layer_norm", "gelu", "cat")
BERT = ("Bert", "BertLayer", "BertAttention", "BertPooler", "Linear")
OWL = ("Owl", "OwlLayer", "OwlAttention", "OwlHead", "Linear")


def model(store, version, size, modules, names=NAMES, **more):
    """Operators of 100 ns each; every module of the model but the first lies in it and calls one of them or two."""
    ops = []
    for at, name in enumerate(names):
        module = f"{modules[0]}_0/{modules[1 + at % 4]}_{at}" if modules else ""
        ops.append((name, 100, {"input_shapes": f"[[{size},{at + 2}]]", "module": module}))
    save(store, version, ops=ops, **more)


def test_models_of_equal_operators_are_not_comparable(memory_store):
    """Of 16 operators with their shapes none is on both sides; of the 9 classes of modules Linear alone is, 11 %."""
    model(memory_store, "v1", 512, BERT)
    model(memory_store, "v2", 900, OWL)
    found = diff(memory_store, "v1", "v2")
    why = "only 0 % of the operators with their shapes are on both sides, and 11 % of the classes of modules"
    assert found.headline == f"v2 against v1: not comparable: {why}"
    assert gate_of_diff(found).code == 3
    assert "not comparable" not in diff(memory_store, "v1", "v2", options=DiffOptions(force=True)).headline


@pytest.mark.parametrize(
    ("size", "modules", "names"),
    [
        (900, BERT, NAMES),  # the same model with other inputs
        (512, OWL, NAMES),  # the same shapes in modules that were renamed
        (900, (), NAMES),  # no modules were recorded, and all names are the same
    ],
)
def test_same_model_stays_comparable(memory_store, size, modules, names):
    model(memory_store, "v1", 512, BERT)
    model(memory_store, "v2", size, modules, names)
    assert "not comparable" not in diff(memory_store, "v1", "v2").headline


def test_without_modules_names_and_shapes_tell_models_apart(memory_store):
    """Of 14 names 2 are on both sides, 14 %; they take most of the time, with other shapes."""
    others = ("mm", "add", *(f"op{at}" for at in range(6)))
    for version, size, names in (("v1", 512, NAMES), ("v2", 900, others)):
        ops = [(name, 5_000 if name == "mm" else 100, {"input_shapes": f"[[{size}]]"}) for name in names]
        save(memory_store, version, ops=ops)
    why = "only 0 % of the operators with their shapes are on both sides, and 14 % of their names"
    assert diff(memory_store, "v1", "v2").headline == f"v2 against v1: not comparable: {why}"
