// header
export function headerPanel(section, { store }) {
  section.textContent = 'header';
  return () => store;
}
