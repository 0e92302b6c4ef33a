import type { Platform } from '../../platform/platform.ts'

type Kind = 'person' | 'store' | 'offer'

/** The ids behind a story's names, and back. Cycles and payouts are called after their owner and number. */
export class KnownIds {
  readonly #platform: Platform
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()
  readonly #slugs = new Map<string, string>()

  constructor(platform: Platform) {
    this.#platform = platform
  }

  add(kind: Kind, name: string, id: string): void {
    this.#ids.set(`${kind} ${name}`, id)
    this.#names.set(id, name)
  }

  addLink(name: string, id: string, slug: string): void {
    this.#names.set(id, name)
    this.#slugs.set(name, slug)
  }

  slug(link: string): string {
    return this.#slugs.get(link) ?? ''
  }

  id(kind: Kind, name: string): string {
    const id = this.#ids.get(`${kind} ${name}`)
    if (id === undefined) throw new Error(`no ${kind} ${name} was made`)
    return id
  }

  /** The name of something that has one; else the id itself, so that a surprise shows up in the comparison. */
  knownName(id: string | null): string | null {
    return id === null ? null : (this.#names.get(id) ?? id)
  }

  /** Of a cycle or payout, which the services may have made just now. */
  async nameOf(id: string): Promise<string> {
    if (!this.#names.has(id)) await this.refresh()
    return this.#names.get(id) ?? id
  }

  /** The id of a cycle or payout; `null` when the services have not made it. */
  async idOf(name: string): Promise<string | null> {
    if (!this.#ids.has(name)) await this.refresh()
    return this.#ids.get(name) ?? null
  }

  /** Gives every cycle and payout that is new its name. */
  async refresh(): Promise<void> {
    const db = this.#platform.database.reader
    const [cycles, payouts] = await Promise.all([
      db
        .selectFrom('billing_cycles')
        .select(['id', 'merchant_id as owner'])
        .orderBy('period_start')
        .execute(),
      db.selectFrom('payouts').select(['id', 'creator_id as owner']).orderBy('id').execute(),
    ])
    this.#number(cycles, '#')
    this.#number(payouts, 'payout ')
  }

  #number(rows: { id: string; owner: string }[], word: string): void {
    for (const [owner, theirs] of Map.groupBy(rows, (row) => row.owner)) {
      for (const [index, { id }] of theirs.entries()) {
        const name = `${this.#names.get(owner) ?? owner} ${word}${index + 1}`
        this.#ids.set(name, id)
        this.#names.set(id, name)
      }
    }
  }
}
