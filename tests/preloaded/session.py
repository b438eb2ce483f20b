"""What the processes of one session of tests share: a folder with the socket, and kernels for notebooks."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import sys
import tempfile
from pathlib import Path

#: The variable of the environment that says where the folder is.
_NAME = "STOWAGE_PRELOADED"
_FRONT = [sys.executable, "-S", "-E", str(Path(__file__).with_name("front.py"))]


def begin() -> None:
    """Make the folder of the session, unless this is one of its processes; nothing is started before it is needed."""
    if _NAME in os.environ or sys.platform != "linux":  # elsewhere a process that has used a lot cannot be forked
        return
    folder = Path(tempfile.mkdtemp(prefix="stowage-"))
    environment = {name: value for name, value in os.environb.items() if name != b"PYTHONPATH"}
    (folder / "server").write_bytes(marshal.dumps((os.getpid(), environment)))
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True)
    words = [*_FRONT, str(folder), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": words, "display_name": "Python 3", "language": "python", "metadata": {"debugger": True}}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    paths = [str(folder), os.environ.get("JUPYTER_PATH")]
    os.environ |= {_NAME: str(folder), "JUPYTER_PATH": os.pathsep.join(filter(None, paths))}


def end() -> None:
    """Remove the folder if this process has made it, which ends what was started."""
    folder = Path(os.environ.get(_NAME, os.devnull))
    if folder.is_dir() and marshal.loads((folder / "server").read_bytes())[0] == os.getpid():
        shutil.rmtree(folder)


def command(*words: str) -> list[str]:
    """A command that is `python` with these words, in a process that has everything imported.

    Args:
        words: `-c` and code, `-m` and a module, or a script; then the program's arguments.
    """
    return [*_FRONT, os.environ[_NAME], *words] if _NAME in os.environ else [sys.executable, *words]
