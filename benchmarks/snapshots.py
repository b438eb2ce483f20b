"""How long it takes to read a memory snapshot of many events, to draw its map, and to pan that in a browser."""

from __future__ import annotations

import argparse
import pickle
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from caching_allocator import Allocator, frame
from playwright.sync_api import sync_playwright

import widgets
from planner import snapshot
from planner.snapshot import check_plain

DEPTH = 14
FRAMES = 120
#: Times between animation frames in each of which a drag goes on, in milliseconds.
PAN = """async count => {
  const frame = () => new Promise(requestAnimationFrame);
  const layer = document.querySelector('.nsewdrag');
  const { left, top } = layer.getBoundingClientRect();
  const mouse = (target, kind, x) => target.dispatchEvent(new MouseEvent(kind, {
    clientX: left + 400 + x, clientY: top + 100, bubbles: true, cancelable: true, buttons: 1, view: window }));
  mouse(layer, 'mousedown', 0);
  const gaps = [];
  let last = await frame();
  for (let k = 0; k < count; k++) {
    mouse(document, 'mousemove', 5 * (k % 60 < 30 ? k % 30 : 30 - k % 30));
    const now = await frame();
    gaps.push(now - last);
    last = now;
  }
  mouse(document, 'mouseup', 0);
  return gaps;
}"""


def recorded(events: int, seed: int) -> dict[str, Any]:
    """A snapshot with stacks as deep as those of a training script, whose frames are shared as PyTorch's are."""
    rng, allocator = random.Random(seed), Allocator()
    torch = [frame(f"/venv/lib/python3.12/site-packages/torch/nn/{k}.py", k) for k in range(DEPTH - 2)]
    stacks = [[*torch[:8], frame("/home/me/model.py", line), *torch[8:]] for line in range(300)]
    held: list[int] = []
    while len(allocator.events) < events:
        if len(held) > 60 or (held and rng.random() < 0.45):
            allocator.free(held.pop(rng.randrange(len(held))))
        else:
            size = rng.choice([1000, 300_000, 3_000_000, 30_000_000])
            held.append(allocator.alloc(size, list(rng.choice(stacks))))
    return allocator.snapshot()


def panned(found: snapshot.MemorySnapshot, folder: Path, chromium: str) -> list[float]:
    """Milliseconds between frames while the map is dragged."""
    path = folder / "map.html"
    widgets.snapshot_map(found, theme="light").write_html(path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 800})
        page.goto(path.as_uri())
        page.wait_for_selector(".nsewdrag")
        gaps: list[float] = page.evaluate(PAN, FRAMES)
        browser.close()
    return gaps


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds on the clock and of the processor, the least of three times."""
    found = []
    for _ in range(3):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        path.write_bytes(pickle.dumps(recorded(events, 1)))
        check_plain(b"\x80\x04}.")  # compiled before it is timed
        found = snapshot.read(path)
        print(f"{events:,} events, {path.stat().st_size / 1e6:.1f} MB\n{'':24}{'seconds':>9}{'CPU':>9}")
        for name, work in (
            ("read", lambda: snapshot.read(path)),
            ("map, light", lambda: widgets.snapshot_map(found, theme="light").to_json()),
            ("map, dark", lambda: widgets.snapshot_map(found, theme="dark").to_json()),
        ):
            print(f"{name:24}{'{:9.2f}{:9.2f}'.format(*timed(work))}")
        if chromium := shutil.which("chromium"):
            half, most, longest = np.percentile(panned(found, Path(folder), chromium), [50, 95, 100])
            print(f"{'pan, ms a frame':24}  p50 {half:.1f}, p95 {most:.1f}, max {longest:.1f}; goal p95 17")


if __name__ == "__main__":
    main()
