// search
export function searchPanel(section, { store }) {
  section.textContent = 'search';
  return () => store;
}
