import { useLayoutEffect, useReducer } from 'preact/hooks'

export interface Store<Value> {
  get(): Value
  set(value: Value): void
  /** The value for a component, which is rendered again when it changes. */
  use(): Value
}

/** A value outside components. */
export function store<Value>(value: Value): Store<Value> {
  const listeners = new Set<() => void>()
  return {
    get: () => value,
    set(next) {
      value = next
      for (const listener of [...listeners]) listener()
    },
    use() {
      const [, render] = useReducer((count: number) => count + 1, 0)
      useLayoutEffect(() => {
        const listener = () => render(undefined)
        listeners.add(listener)
        return () => void listeners.delete(listener)
      }, [listeners])
      return value
    },
  }
}

/** What the browser keeps for the next visit. */
export const kept = {
  /** `undefined` where the browser refuses storage. */
  get(name: string): string | null | undefined {
    try {
      return localStorage.getItem(name)
    } catch {}
  },
  set(name: string, value: string): void {
    try {
      localStorage.setItem(name, value)
    } catch {
      // The choice holds until the page is left.
    }
  },
}
