// The one tooltip of a widget: a name, exact numbers and sometimes a hint at what a click does.
import { escape } from '../core/units.js';

function element(host) {
  const root = host.closest('.sw');
  let tip = root.querySelector(':scope > .sw-tip');
  if (!tip) {
    tip = root.appendChild(document.createElement('div'));
    tip.className = 'sw-tip';
    tip.setAttribute('role', 'tooltip');
    // on top of everything, and positioned in the window even if a notebook moves its outputs by transforms
    tip.popover = 'manual';
    tip.hidden = true;
  }
  return tip;
}

// `rows`: pairs of text; a third entry is a colour that is shown before the first.
export function showTip(event, host, title, rows, foot = '') {
  const tip = element(host);
  const ground = swatch => (swatch ? `<i class="k" style="background:${swatch}"></i> ` : '');
  const row = ([name, value, swatch]) => `<dt>${ground(swatch)}${escape(name)}</dt><dd>${escape(value)}</dd>`;
  tip.innerHTML = `<b>${escape(title)}</b><dl>${rows.map(row).join('')}</dl>${foot ? `<p>${escape(foot)}</p>` : ''}`;
  tip.hidden = false;
  if (!tip.matches(':popover-open')) tip.showPopover();
  const { offsetWidth: width, offsetHeight: height } = tip;
  const below = event.clientY + 16 + height <= innerHeight;
  tip.style.left = Math.max(4, Math.min(innerWidth - width - 6, event.clientX + 14)) + 'px';
  tip.style.top = (below ? event.clientY + 16 : Math.max(4, event.clientY - height - 10)) + 'px';
}

export function hideTip(host) {
  const tip = element(host);
  if (tip.hidden) return;
  if (tip.matches(':popover-open')) tip.hidePopover();
  tip.hidden = true;
}
