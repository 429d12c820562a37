"""Compiles the decoder of Kineto traces (tracker/readers/torch_profiler/native) to where it is imported from.

pip runs this as a build hook. Where there is no C compiler, or it fails, tracker is installed without: then Python
decodes, to the same results, at about half the speed. By hand, after a change of the C sources:

    python scripts/build_native.py      # needs setuptools
"""

from __future__ import annotations

import os
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "tracker/readers/torch_profiler/native"


def compile_native(root: Path, to: Path) -> Path:
    """Compiles the sources below `root` into the folder `to`: a module that every Python from 3.11 on loads. Any
    exception: it failed.
    """
    from setuptools import Distribution, Extension

    sources = sorted(path.relative_to(root).as_posix() for path in (root / PACKAGE).glob("*.[ch]"))
    extension = Extension(
        "_compiled",
        [name for name in sources if name.endswith(".c")],
        depends=[name for name in sources if name.endswith(".h")],
        extra_compile_args=os.environ.get("TRACKER_CFLAGS", "").split(),
        py_limited_api=True,
    )
    with chdir(root), TemporaryDirectory() as scratch:
        command: Any = Distribution({"name": "tracker", "ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_temp, command.build_lib = scratch, str(to)
        command.force = True
        command.ensure_finalized()
        command.run()
    return next(path for path in to.glob("_compiled*") if path.suffix in {".so", ".pyd"})


class NativeBuildHook(BuildHookInterface):
    """What hatchling runs before it packs, or links, the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles; a wheel with the module is for this platform, one without it for all."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        to = root / PACKAGE if version == "editable" else Path(mkdtemp())
        try:
            module = compile_native(root, to)
        except (Exception, SystemExit) as error:  # noqa: BLE001 whatever it is, Python decodes as well
            self.app.display_warning(f"tracker is installed without its compiled decoder, so slower: {error}")
            return
        if version != "editable":
            build_data["force_include"][str(module)] = f"{PACKAGE}/{module.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


if __name__ == "__main__":
    print(compile_native(ROOT, ROOT / PACKAGE))
