// memory
export function memoryPanel(section, { store }) {
  section.textContent = 'memory';
  return () => store;
}
