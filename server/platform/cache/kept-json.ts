import type { Page } from '../api/page.ts'

const texts = new WeakMap<object, string>()

/** Has the JSON of what is answered often be made once only. From here on nobody may change it. */
export function keepJson<Value extends object>(value: Value): Value {
  texts.set(value, JSON.stringify(value))
  return Object.freeze(value)
}

/** What `JSON.stringify` would say, with the kept texts of a page's items taken as they are. */
export function jsonOf(value: unknown): string {
  if (!isPage(value)) return JSON.stringify(value)
  const items = value.items.map((item) => texts.get(item) ?? JSON.stringify(item) ?? 'null')
  return `{"items":[${items.join()}],"next_cursor":${JSON.stringify(value.next_cursor)}}`
}

function isPage(value: unknown): value is Page<object> {
  if (typeof value !== 'object' || value === null) return false
  const [items, cursor, ...more] = Object.keys(value)
  if (items !== 'items' || cursor !== 'next_cursor' || more.length > 0) return false
  const page = value as Record<'items' | 'next_cursor', unknown>
  return Array.isArray(page.items) && page.next_cursor !== undefined
}
