import { store } from './store.ts'

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
