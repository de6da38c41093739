"""The original's entry point: `python agentclinic.py --config agentclinic.config.json --workers 4`.

This file has the package's name. Next to the package (in the repository), Python prefers the package. A folder made by
`agentclinic init` has none: the folder is taken off the path while the installed package is imported, and the package
then replaces this module.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType


def _package() -> ModuleType:
    here = Path(__file__).resolve().parent
    path = sys.path[:]
    if not (here / "agentclinic" / "__init__.py").is_file():
        sys.path[:] = [entry for entry in path if Path(entry or ".").resolve() != here]
    shadow = sys.modules.pop("agentclinic", None)
    try:
        return importlib.import_module("agentclinic")
    except ModuleNotFoundError as error:
        if shadow is not None:
            sys.modules["agentclinic"] = shadow
        sys.stderr.write(f"Error: {error.name} is not installed; run `pip install DIR`, where DIR is the repository\n")
        raise SystemExit(2) from None
    finally:
        sys.path[:] = path


if __name__ == "__main__":
    _package().main()
else:
    sys.modules[__name__] = _package()
