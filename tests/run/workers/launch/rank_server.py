"""Forks ranks, as a launcher starts them, from a process that has imported PyTorch: `python rank_server.py`.

Reads a JSON line per launch from its standard input: which of `SCENARIOS` its ranks go through, with which arguments,
and the environment of each. Answers with a line of their process numbers, and when all have ended with one of what each
has to say.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from planner import torch_private
from tests.run.workers.launch.scenarios import SCENARIOS


def serve() -> None:
    torch_private.import_compiler()
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(rank) for rank in range(len(asked["environments"]))]
            pairs = zip(files, asked["environments"], strict=True)
            processes = [fork(asked["scenario"], asked["arguments"], each, file) for file, each in pairs]
            print(json.dumps(processes), flush=True)
            for _ in processes:
                os.wait()  # whichever ends next, or it would seem to be there still
            print(json.dumps([json.loads(file.read_text()) if file.exists() else None for file in files]), flush=True)


def fork(scenario: str, arguments: list[object], environment: dict[str, str], file: Path) -> int:
    process = os.fork()
    if process:
        return process
    sys.stdin.close()
    os.environ.update(environment)
    try:
        found = SCENARIOS[scenario](int(environment.get("RANK", 0)), *arguments)
    except BaseException as error:
        found = f"{type(error).__name__}: {error}"
    file.write_text(json.dumps(found))
    os._exit(0)


if __name__ == "__main__":
    serve()
