// selection
export function selectionPanel(section, { store }) {
  section.textContent = 'selection';
  return () => store;
}
