import { kept, store } from './store.ts'
import { key } from './text.ts'

export const THEMES = { auto: key('Automatic'), light: key('Light'), dark: key('Dark') }
type Theme = keyof typeof THEMES

const THEME = 'portal.theme'
const current = store<Theme>('auto')

/** The chosen colors; the component is rendered again when they change. */
export const useTheme = (): Theme => current.use()

export function setTheme(theme: Theme): void {
  kept.set(THEME, theme)
  document.documentElement.dataset.theme = theme
  current.set(theme)
}

// The colors of the last visit.
const chosen = kept.get(THEME) ?? ''
setTheme(Object.hasOwn(THEMES, chosen) ? (chosen as Theme) : 'auto')
