"""Compiles what is written in C to where it is imported from: the decoder of Kineto traces, the nesting of spans.

pip runs this as a build hook. Where there is no C compiler, or it fails, tracker is installed without: then Python
does the same, to the same rows but slower (tracker --version says which). By hand, after a change of the C sources:

    python scripts/build_native.py      # needs setuptools
"""

from __future__ import annotations

import hashlib
import re
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # by hand
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parents[1]
DECODER = "tracker/readers/torch_profiler/native"
PACKAGES = (DECODER, "tracker/timeline/native")


def compile_native(root: Path, to: Path, package: str = DECODER) -> Path:
    """Compiles the sources of a package below `root` into the folder `to`: a module that every Python from 3.11 on
    loads. Any exception: it failed, and none is there; but what is there stays where this Python is too old.
    """
    # not above: an older Python lacks it, and pip loads this file before it says which Python tracker requires
    from contextlib import chdir

    for stale in modules_in(to):
        stale.unlink()
    from setuptools import Distribution, Extension

    sources = sorted((root / package).glob("*.[ch]"))
    # as tracker.profile.compiled.sources_digest, which cannot be imported where nothing is installed yet
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=16).hexdigest()
    extension = Extension(
        "_compiled",
        [path.relative_to(root).as_posix() for path in sources if path.suffix == ".c"],
        depends=[path.relative_to(root).as_posix() for path in sources if path.suffix == ".h"],
        define_macros=[("SOURCES", f'"{digest}"')],
        py_limited_api=True,
    )
    with chdir(root), TemporaryDirectory() as scratch:
        command: Any = Distribution({"name": "tracker", "ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_temp, command.build_lib = scratch, str(to)
        command.force = True
        command.ensure_finalized()
        command.run()
    (module,) = modules_in(to)
    return module


def modules_in(folder: Path) -> list[Path]:
    """The compiled modules in `folder`, of whatever age."""
    return [path for path in folder.glob("_compiled*") if path.suffix in {".so", ".pyd"}]


class NativeBuildHook(BuildHookInterface):
    """What hatchling runs before it packs, or links, the package."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles; a wheel with the module is for this platform, one without it for all."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        self.scratch = TemporaryDirectory()
        try:
            for number, package in enumerate(PACKAGES):
                to = root / package if version == "editable" else Path(self.scratch.name, str(number))
                module = compile_native(root, to, package)
                if version != "editable":
                    build_data["force_include"][str(module)] = f"{package}/{module.name}"
        except (Exception, SystemExit) as error:  # noqa: BLE001 whatever it is, Python does the same
            self.app.display_warning(f"tracker is installed without its compiled decoder, so slower: {error}")
            return
        build_data["pure_python"] = False
        platform = re.sub(r"\W", "_", sysconfig.get_platform())
        build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was compiled for a wheel that is made."""
        if self.target_name == "wheel":
            self.scratch.cleanup()


if __name__ == "__main__":
    for each in PACKAGES:
        print(compile_native(ROOT, ROOT / each, each))
