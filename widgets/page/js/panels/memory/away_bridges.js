// Dashed bridges over the absences of a storage, from its old address to its new one.
import { secondsText } from '../../core/units.js';

const LABELLED = 90; // least width in pixels of a bridge with its duration as label

export function paintBridges(g, c, view, storages) {
  const { plan, axis } = view.map;
  const bytes = row => plan.graphData.bytesOf(plan.residency_storage[row]);
  const middle = row => view.y(plan.residency_offset[row] + bytes(row) / 2);
  g.lineWidth = 1.2;
  g.strokeStyle = c.ink;
  for (const storage of storages) {
    const residencies = plan.residencies(storage);
    for (let k = 1; k < residencies.length; k++) {
      const [seconds, again] = [plan.residency_stop[residencies[k - 1]], plan.residency_start[residencies[k]]];
      const from = [axis.x(seconds), middle(residencies[k - 1])];
      const to = [axis.x(again), middle(residencies[k])];
      bridge(g, from, to);
      if (storages.size === 1) label(g, c, view.map.area, from, to, 'away ' + secondsText(again - seconds));
    }
  }
  g.lineWidth = 1;
}

function bridge(g, [x0, y0], [x1, y1]) {
  const bend = (x1 - x0) * 0.4;
  g.setLineDash([3, 3]);
  g.beginPath();
  g.moveTo(x0, y0);
  g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  g.stroke();
  g.setLineDash([]);
}

// The label, in the middle of the visible part of a bridge.
function label(g, c, area, [x0, y0], [x1, y1], text) {
  const left = Math.max(x0, area.left);
  const right = Math.min(x1, area.right);
  if (right - left < LABELLED) return;
  const x = (left + right) / 2;
  const y = Math.max(area.top + 10, Math.min(area.bottom - 10, height(y0, y1, (x - x0) / (x1 - x0))));
  const width = g.measureText(text).width + 10;
  g.fillStyle = c.panel;
  g.fillRect(x - width / 2, y - 8, width, 16);
  g.strokeRect(x - width / 2, y - 8, width, 16);
  g.fillStyle = c.ink;
  g.textAlign = 'center';
  g.fillText(text, x, y + 0.5);
  g.textAlign = 'left';
}

// The height of a bridge at a share of its width: its ends are level, so a smoothstep is accurate enough for a label.
const height = (y0, y1, share) => y0 + (y1 - y0) * share * share * (3 - 2 * share);
