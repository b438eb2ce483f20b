// streams
export function streamsPanel(section, { store }) {
  section.textContent = 'streams';
  return () => store;
}
