// holders
export function holdersPanel(section, { store }) {
  section.textContent = 'holders';
  return () => store;
}
