import type { OrderReader } from '../../jobs/order-reader.ts'
import type { ReadOrders } from '../../jobs/read-order.ts'
import { eventually } from './eventually.ts'

export type CountedReader = ReturnType<typeof countedReader>

const ASK_AGAIN_MS = 1000

type Read = ReadOrders extends ReadonlyMap<string, infer Value> ? Value : never

/** Tells of each order that is taken out. */
class Counted extends Map<string, Read> {
  readonly #onUse: () => void
  readonly #used = new Set<string>()

  constructor(orders: ReadOrders, onUse: () => void) {
    super(orders)
    this.#onUse = onUse
  }

  override get(id: string): Read | undefined {
    const order = super.get(id)
    if (order && !this.#used.has(id)) this.#onUse()
    this.#used.add(id)
    return order
  }
}

/** A reader that counts how often its results were used. */
export function countedReader(reader: OrderReader) {
  let used = 0
  const count = () => {
    used += 1
  }
  return {
    /** How many orders were taken as its thread had read them. */
    get used() {
      return used
    },
    ...reader,
    read: () => new Counted(reader.read(), count),
    /** Has the thread begin, and waits until it has read so many that it had not before. */
    async readAhead(many: number) {
      if (many === 0) return
      const before = reader.read()
      let askedAt = Number.NEGATIVE_INFINITY
      const fresh = () => {
        // On a busy machine the thread may take longer to start than an idle one lives.
        if (performance.now() - askedAt > ASK_AGAIN_MS) {
          askedAt = performance.now()
          reader.readOn([])
        }
        return [...reader.read().keys()].filter((id) => !before.has(id)).length
      }
      await eventually(fresh, (count) => count >= many)
    },
  }
}
