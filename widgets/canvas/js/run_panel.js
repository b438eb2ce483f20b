// run
export function runPanel(section, { store }) {
  section.textContent = 'run';
  return () => store;
}
