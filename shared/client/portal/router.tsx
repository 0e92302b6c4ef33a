import type { ComponentChildren } from 'preact'
import { store } from './store.ts'

const ROOT = '/app'

export interface Route {
  /** Below `/app`, such as `/offers`. */
  path: string
  query: URLSearchParams
}

function read(): Route {
  return {
    path: location.pathname.slice(ROOT.length).replace(/\/+$/, '') || '/',
    query: new URLSearchParams(location.search),
  }
}

const route = store(read())
addEventListener('popstate', () => route.set(read()))

/** Where the page is; the component is rendered again when that changes. */
export const useRoute = (): Route => route.use()

/** Goes to a path below `/app`, which may have a query. */
export function navigate(to: string, { replace = false } = {}): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', ROOT + to)
  route.set(read())
  if (!replace) scrollTo(0, 0)
}

/** The current path with other query parameters; an empty one is left out. */
export function withQuery(changes: Record<string, string>): string {
  const { path, query } = read()
  for (const [name, value] of Object.entries(changes)) {
    if (value === '') query.delete(name)
    else query.set(name, value)
  }
  return query.size > 0 ? `${path}?${query}` : path
}

/** The parameters of a path that fits a pattern such as `/offers/:id`; `null` if it does not. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const found = new RegExp(`^${pattern.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')}$`).exec(path)
  return found && { ...found.groups }
}

interface LinkProps {
  /** A path below `/app`. */
  to: string
  class?: string
  current?: boolean
  children: ComponentChildren
}

/** A link to a screen. Modified clicks open tabs as usual. */
export function Link({ to, current, children, class: name }: LinkProps) {
  return (
    <a
      href={ROOT + to}
      class={name}
      aria-current={current ? 'page' : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        navigate(to)
      }}
    >
      {children}
    </a>
  )
}
