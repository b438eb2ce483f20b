// A run as columns of pixels: the maximum predicted and measured in each. Every step of the run has the same width, so
// that prediction and measurement of a step align although they differ in length.

// `run`: message of kind `run`; `width`: pixels in all. Columns without a value are NaN.
export function runColumns(run, width) {
  const count = Math.max(1, Math.floor(width));
  const predicted = new Float64Array(count).fill(NaN);
  const measured = new Float64Array(count).fill(NaN);
  const steps = Math.max(1, run.steps);
  const edge = step => Math.round((step / steps) * count);
  for (let step = 0; step < steps; step++) {
    fill(predicted, run.predicted_seconds, run.predicted_bytes, {
      from: 0,
      length: run.predicted_step_seconds,
      first: edge(step),
      last: edge(step + 1),
    });
  }
  for (let step = 0; step < Math.min(steps, run.step_start.length); step++) {
    const until = run.step_seconds.length > step ? Infinity : run.seconds[run.seconds.length - 1];
    fill(measured, run.seconds, run.bytes, {
      from: run.step_start[step],
      length: lengthOf(run, step),
      first: edge(step),
      last: edge(step + 1),
      until,
    });
  }
  const perStep = values => stepColumns(values ?? [], count, edge);
  return { predicted, measured, gpu: perStep(run.gpu_bytes), allocator: perStep(run.allocator_bytes), steps, edge };
}

// One value for each step that has begun, over all of its columns; 0 stands for none.
function stepColumns(values, count, edge) {
  const columns = new Float64Array(count).fill(NaN);
  values.forEach((bytes, step) => {
    if (bytes) columns.fill(bytes, edge(step), edge(step + 1));
  });
  return columns;
}

// Length of a step; for the current step, its expected length judging by the others.
function lengthOf(run, step) {
  if (step < run.step_seconds.length) return run.step_seconds[step];
  const done = run.step_seconds;
  const passed = run.seconds.length ? run.seconds[run.seconds.length - 1] - run.step_start[step] : 0;
  const usual = done.length ? done.reduce((a, b) => a + b, 0) / done.length : run.predicted_step_seconds;
  return Math.max(usual || 0, passed, 1e-9);
}

// The largest value within each column; a value holds until the next one.
function fill(into, times, values, { from, length, first, last, until = Infinity }) {
  if (!(length > 0) || !times.length) return;
  let k = lastBefore(times, from);
  for (let column = first; column < last; column++) {
    const start = from + ((column - first) / (last - first)) * length;
    const stop = from + ((column + 1 - first) / (last - first)) * length;
    if (start > until) return;
    let most = k >= 0 ? values[k] : NaN;
    while (k + 1 < times.length && times[k + 1] < stop) {
      k++;
      if (!(values[k] <= most)) most = values[k];
    }
    into[column] = most;
  }
}

function lastBefore(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
