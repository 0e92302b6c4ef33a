import { type MessagePort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { type LeadingText, leadingTexts, upcomingEvents } from '../inbox/upcoming-events.service.ts'
import type { Database } from '../platform/database/database.ts'
import { openDatabase } from '../platform/database/open-database.ts'
import { isToBeRead, KEPT_BYTES, type KeptOrder, type OrderNaming, readOrder } from './read-order.ts'

export interface ThreadSettings {
  url: string
  names: OrderNaming
  port: MessagePort
}

/** The worker is about to apply the events `taken`: what is due behind them, among the first `limit`, is to be read. */
export interface ReadOn {
  /** Epoch ms. */
  now: number
  limit: number
  taken: readonly string[]
}

/** What the thread sends, as JSON, which takes less time than a structured clone. */
export type ReaderMessage =
  | { kind: 'read'; orders: [eventId: string, KeptOrder][] }
  | { kind: 'failed'; message: string }

/** Bodies loaded at a time: few, so that the worker can use them soon. One body may have 2 MiB. */
const AT_ONCE = 100
const BYTES_AT_ONCE = 8 * 1024 * 1024

const { url, names, port } = workerData as ThreadSettings

/** Due events that the worker has, or was notified of. */
let known = new Set<string>()
let asked: ReadOn | null = null

let wake = () => {}

function take(ask: ReadOn): void {
  for (const id of ask.taken) known.add(id)
  asked = ask
  wake()
}

/** Does not wait for a turn of the event loop: reading from SQLite blocks it. */
function receive(): void {
  for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port)) take(next.message)
}

async function readOn(db: Database['reader'], { now, limit }: ReadOn): Promise<void> {
  const due = await upcomingEvents(db, 'store', now, limit).execute()
  receive()
  known = new Set(due.flatMap(({ id }) => (known.has(id) ? [id] : [])))
  const left = due.flatMap((event) => (isToBeRead(event) && !known.has(event.id) ? [event.id] : []))
  const topics = new Map(due.map(({ id, topic }) => [id, topic]))
  let bytes = 0
  // Asked again meanwhile, it starts from what is due then.
  while (left.length > 0 && bytes < KEPT_BYTES && asked === null) {
    const texts = await leadingTexts(db, left.slice(0, AT_ONCE), BYTES_AT_ONCE)
    left.splice(0, texts.size)
    send({ kind: 'read', orders: readAll(texts, topics) })
    for (const [id, text] of texts) {
      known.add(id)
      bytes += text?.text.length ?? 0
    }
    receive()
  }
}

function readAll(texts: ReadonlyMap<string, LeadingText | null>, topics: ReadonlyMap<string, string | null>) {
  return [...texts].flatMap(([id, found]): [string, KeptOrder][] => {
    if (found === null) return []
    const { text, bodyHash } = found
    try {
      const order = readOrder(text, topics.get(id) ?? null, names)
      return [[id, { order, bytes: text.length, bodyHash }]]
    } catch {
      // The worker meets the same error when it applies the event, and handles it.
      return []
    }
  })
}

function send(message: ReaderMessage): void {
  port.postMessage(JSON.stringify(message))
}

async function work(): Promise<void> {
  const database = await openDatabase(url, { create: false, readOnly: true })
  for (;;) {
    while (asked === null) await new Promise<void>((resolve) => (wake = resolve))
    const now: ReadOn = asked
    asked = null
    await readOn(database.reader, now)
  }
}

port.on('message', take)

work().catch((error: unknown) => send({ kind: 'failed', message: String(error) }))
