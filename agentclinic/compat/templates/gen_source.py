"""The original's script of this name: `python generate_cases/{script} --workers 30 --limit 15`.

The same as `agentclinic generate {source}` with the settings in gen.config.json next to this file.
"""

import sys
from pathlib import Path

try:
    from agentclinic.cli import main
except ModuleNotFoundError as error:
    sys.stderr.write(f"Error: {error.name} is not installed; run `pip install DIR`, where DIR is the repository\n")
    raise SystemExit(2) from None

if __name__ == "__main__":
    given = sys.argv[1:]
    config = Path(__file__).resolve().parent / "gen.config.json"
    named = any(flag.partition("=")[0].replace("_", "-") in ("--config", "--gen-config") for flag in given)
    main(["generate", "{source}", *([] if named or not config.is_file() else ["--config", str(config)]), *given])
