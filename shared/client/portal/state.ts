import { useLayoutEffect, useReducer } from 'preact/hooks'

/** A value outside components. `use` answers it to a component, which is rendered again when it changes. */
export function store<Value>(value: Value) {
  const renders = new Set<(action: unknown) => void>()
  return {
    get: () => value,
    set(next: Value) {
      value = next
      for (const render of [...renders]) render(undefined)
    },
    use() {
      const [, render] = useReducer<number, unknown>((count) => count + 1, 0)
      useLayoutEffect(() => {
        renders.add(render)
        return () => void renders.delete(render)
      }, [renders])
      return value
    },
  }
}
export type Store<Value> = ReturnType<typeof store<Value>>

const keptIn = (place: () => Storage) => ({
  get<Value>(name: string): Value | null | undefined {
    try {
      return JSON.parse(place().getItem(name) ?? 'null')
    } catch {}
  },
  set(name: string, value: unknown): void {
    try {
      place().setItem(name, JSON.stringify(value))
    } catch {}
  },
})

/** What the browser keeps for the next visit. Where it refuses storage, a value is `undefined`, and a choice holds until the page is left. */
export const kept = keptIn(() => localStorage)
/** What it keeps until the tab is closed. */
export const keptInTab = keptIn(() => sessionStorage)

const THEME = 'portal.theme'

/** The chosen colors: `auto`, `light` or `dark`. */
export const theme = store('auto')

export function setTheme(chosen: string): void {
  kept.set(THEME, chosen)
  document.documentElement.dataset.theme = chosen
  theme.set(chosen)
}

setTheme(kept.get<string>(THEME) ?? 'auto')

export const news = store<{ id: number; text: string }[]>([])

const NEWS_MS = 8000
let lastId = 0

/** Shows a short notice, which screen readers read out. */
export function tell(text: string): void {
  lastId += 1
  const id = lastId
  news.set([...news.get().slice(-2), { id, text }])
  setTimeout(() => news.set(news.get().filter((one) => one.id !== id)), NEWS_MS)
}

const ROOT = '/app'

const read = () => ({
  /** Below `/app`, such as `/offers`. */
  path: location.pathname.slice(ROOT.length).replace(/\/+$/, '') || '/',
  query: new URLSearchParams(location.search),
})

/** Where the page is. */
export const route = store(read())
addEventListener('popstate', () => route.set(read()))

/** Goes to a path below `/app`, which may have a query. */
export function navigate(to: string, { replace = false } = {}): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', ROOT + to.replace(/\?$/, ''))
  route.set(read())
  if (!replace) scrollTo(0, 0)
}

// Links to screens need no new page. Modified clicks open tabs as usual.
addEventListener('click', (event) => {
  const link = (event.target as Element).closest<HTMLAnchorElement>(`a[href^="${ROOT}/"]`)
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  event.preventDefault()
  navigate(link.pathname.slice(ROOT.length) + link.search)
})

/** The parameters of a path that fits a pattern such as `/offers/:id`; `null` if it does not. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const found = new RegExp(`^${pattern.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`).exec(path)
  return found && { ...found.groups }
}
