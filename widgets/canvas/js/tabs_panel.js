// tabs
export function tabsPanel(section, { store }) {
  section.textContent = 'tabs';
  return () => store;
}
