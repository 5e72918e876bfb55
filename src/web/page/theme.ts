/** What the page looks like on this device. */
export type Theme = 'system' | 'light' | 'dark'

const THEME = 'codemachine.theme'

/** The theme that was chosen here; without one that of the system. */
export function chosenTheme(): Theme {
  const kept = localStorage.getItem(THEME)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Keeps a theme for this device, and shows the page in it. */
export function chooseTheme(theme: Theme): void {
  localStorage.setItem(THEME, theme)
  applyTheme()
}

/** Shows the page in the theme that was chosen. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = chosenTheme()
}
