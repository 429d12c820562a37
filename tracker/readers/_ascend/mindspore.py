"""Names as MindSpore writes them: a layer of its runtime in front, the place in the network, and a number of the graph.

`Kernel::KernelLaunch::Default/network-Net/fc-Dense/MatMul-op12` is the operator MatMul in the module
Default/network-Net/fc-Dense; the kernel that it launches is called the same and `/aclnnMatmul_MatMulV2` behind it.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

CATEGORY: Final = ""
"""Of the host events of MindSpore; other writers leave it out or write a word."""

_LAYERS: Final = re.compile(r"(?:\w{1,64}::){1,4}")
_OPERATORS: Final = re.compile(r"(?:Kernel::KernelLaunch|PynativeFramework::\w{1,64})::")
_NUMBER_IN_GRAPH: Final = re.compile(r"-op\d{1,9}$")
_KERNEL: Final = re.compile(r"(?:\w{1,64}::){2}\S*/(?P<kernel>[^/\s]{1,512})")


class HostName(Struct, frozen=True):
    """What the name of a host event says. `is_operator`: else it is a range of the runtime or of the program."""

    name: str
    module: str = ""
    is_operator: bool = False


def host_name(name: str) -> HostName:
    """Return what the name of a host event says, without the layer that wrote it.

    >>> host_name("Kernel::KernelLaunch::Default/network-Net/fc-Dense/MatMul-op12")
    HostName(name='MatMul', module='Default/network-Net/fc-Dense', is_operator=True)
    >>> host_name("PynativeFramework::PyNativeLaunchTask::Add").name, host_name("Python::PythonObserved::Step#1").name
    ('Add', 'Step#1')
    """
    layers = _LAYERS.match(name)
    bare = name[layers.end() :] if layers else name
    if not _OPERATORS.match(name) or not bare:
        return HostName(bare or name)
    module, _, operator = bare.rpartition("/")
    return HostName(_NUMBER_IN_GRAPH.sub("", operator), module, is_operator=True)


def kernel_name(name: str) -> str:
    """Return the name of a kernel without the operator that launched it in front.

    >>> kernel_name("Kernel::KernelLaunch::Default/fc-Dense/MatMul-op12/aclnnMatmul_MatMulV2"), kernel_name("MatMulV2")
    ('aclnnMatmul_MatMulV2', 'MatMulV2')
    """
    match = _KERNEL.fullmatch(name)
    return match["kernel"] if match else name
