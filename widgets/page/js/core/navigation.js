// Going to a place of the step: the peak, a stall, the selection, the next op or tensor; for panels and keys.

// Zoom to the peak of the plan, with some of the step on both sides, and select the op that runs then.
export function goToPeak({ store, axis }) {
  const { plan } = store;
  if (!plan?.slots) return;
  const span = Math.min(plan.step_seconds, (axis.seconds(axis.to) - axis.seconds(axis.from)) / 3 || plan.step_seconds);
  axis.fit(plan.peak.seconds - span / 2, plan.peak.seconds + span / 2);
  store.set({ selection: { type: 'op', id: plan.peak.op } });
}

// Zoom to the longest stall and select what it waits for.
export function goToStall({ store, axis }) {
  const { plan } = store;
  if (!plan?.stall_start.length) return;
  let worst = 0;
  const length = k => plan.stall_stop[k] - plan.stall_start[k];
  for (let k = 1; k < plan.stall_start.length; k++) if (length(k) > length(worst)) worst = k;
  axis.fit(plan.stall_start[worst] - 2 * length(worst), plan.stall_stop[worst] + 2 * length(worst));
  const storage = plan.stall_storage[worst];
  const op = plan.stall_op[worst];
  if (storage >= 0) store.set({ selection: { type: 'storage', id: storage } });
  else if (op >= 0) store.set({ selection: { type: 'op', id: op } });
}

// Zoom to the whole selection.
export function goToSelection({ root, store, axis }) {
  const { focus, plan } = store;
  if (!focus || !plan) return;
  if (focus.type === 'span') {
    goToSpan(focus, root, axis);
    return;
  }
  let from = Infinity;
  let to = 0;
  const cover = (a, b) => {
    from = Math.min(from, a);
    to = Math.max(to, b);
  };
  if (focus.type !== 'op') {
    for (const storage of focus.storages) {
      for (const row of plan.residencies(storage)) cover(plan.residency_start[row], plan.residency_stop[row]);
    }
  }
  if (from >= to) {
    const slots = [...focus.ops].flatMap(op => [...plan.slotsOf(op)]);
    for (const slot of slots) cover(plan.op_start[slot], plan.op_stop[slot]);
    if (from < to) axis.fit(from, to, focus.type === 'op' && slots.length === 1 ? 6 : 0.04);
    return;
  }
  axis.fit(from, to, 0.04);
}

function goToSpan({ time, addresses }, root, axis) {
  const ends = pair => [Math.min(...pair), Math.max(...pair)];
  const map = root.querySelector('.sw-memory .plot')?.plot;
  if (time) axis.fit(...ends(time).map(share => share * axis.plan.step_seconds), 0.04);
  if (!addresses || !map) return;
  const [low, high] = ends(addresses);
  map.addresses.show(low - (high - low) * 0.04, high + (high - low) * 0.04);
  map.draw();
}

// Select the op before or after the selected one, in the order of the plan; an op that runs again, where it runs first.
export function stepOp({ store, axis }, by) {
  const { focus, plan } = store;
  if (!plan?.slots) return;
  let slot = plan.slotAt(axis.seconds(axis.from));
  if (focus?.ops.size) slot = [...focus.ops].reduce((least, op) => Math.min(least, plan.slotOf(op)), Infinity);
  let next = slot + (focus?.type === 'op' ? by : 0);
  while (plan.isRepeat(next)) next += by;
  store.set({ selection: { type: 'op', id: plan.order[next] ?? plan.order[slot] } });
}

// Select the next larger (-1) or smaller (1) tensor of the selected op, or of the first op of the selection.
export function stepTensor({ store }, by) {
  const { focus, graph, plan } = store;
  if (!focus || !plan || !focus.ops.size) return;
  const op = focus.type === 'op' ? focus.id : [...focus.ops][0];
  const tensors = [...graph.touches(op)].sort((a, b) => graph.bytesOf(b) - graph.bytesOf(a));
  if (!tensors.length) return;
  const now = focus.type === 'storage' ? tensors.indexOf(focus.id) : -1;
  store.set({ selection: { type: 'storage', id: tensors[Math.max(0, Math.min(tensors.length - 1, now + by))] } });
}
