// graph
export function graphPanel(section, { store }) {
  section.textContent = 'graph';
  return () => store;
}
