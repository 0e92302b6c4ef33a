import { CURRENCY, type Paisa } from '../../../shared/money.ts'
import type {
  CallOutcome,
  LookupItem,
  LookupKeys,
  LookupOutcome,
  Processor,
} from '../../processor/processor.ts'

/**
 * How a call ends. `lose`: it takes effect and its answer is lost. `drop`: it takes no effect and its answer is lost
 * nevertheless. `throttle`: a 429, known to have had no effect.
 */
export type Answer = 'ok' | 'lose' | 'drop' | 'refuse' | 'throttle'

export interface Held extends LookupItem {
  attemptId: string
  /** What came with the call beside reference and amount. */
  rest: unknown
}

interface Call {
  attemptId: string
  reference: string
  amount: Paisa
}

interface MadeCall extends Call {
  kind: 'invoice' | 'payout'
}

/** A processor in memory with scripted answers. Like a real one it recognizes a repeated key. */
export class ScriptedProcessor implements Processor {
  payoutUnit = 1
  /** Whether it requests payments from bank accounts. */
  needsBillingAccount = false
  readonly invoices: Held[] = []
  readonly payouts: Held[] = []
  /** Every call, and the references of every look-up, in order. */
  readonly calls: MadeCall[] = []
  readonly lookups: string[] = []
  /** How the next calls end; `ok` once it is empty. */
  answers: Answer[] = []
  retryAfterMs: number | undefined
  lookupsFail = false
  /** Look-ups do not show yet what was done. */
  lookupsLag = false
  /** How the nth call (from 0) for a reference ends, whatever order they come in. Goes before `answers`. */
  answerTo: ((reference: string, nth: number) => Promise<Answer>) | undefined
  /** Makes the next ids; to be replaced by a test that wants certain ones. */
  nextId = (kind: 'inv' | 'po', count: number, _reference: string) => `${kind}_${count}`

  createInvoice(call: Parameters<Processor['createInvoice']>[0]): Promise<CallOutcome> {
    const { customer, billingAccount } = call
    return this.#answer('invoice', call, billingAccount ? { ...customer, billingAccount } : customer)
  }

  createPayout(call: Parameters<Processor['createPayout']>[0]): Promise<CallOutcome> {
    return this.#answer('payout', call, call.destination)
  }

  async findInvoices({ reference }: LookupKeys): Promise<LookupOutcome> {
    return this.#find(this.invoices, reference)
  }

  async findPayouts({ reference }: LookupKeys): Promise<LookupOutcome> {
    return this.#find(this.payouts, reference)
  }

  /** The same processor with some of its calls replaced. */
  instead(changes: Partial<Processor>): Processor {
    return {
      payoutUnit: this.payoutUnit,
      createInvoice: (call) => this.createInvoice(call),
      createPayout: (call) => this.createPayout(call),
      findInvoices: (keys) => this.findInvoices(keys),
      findPayouts: (keys) => this.findPayouts(keys),
      ...changes,
    }
  }

  #find(held: Held[], reference: string): LookupOutcome {
    this.lookups.push(reference)
    if (this.lookupsFail) return { kind: 'unavailable', detail: 'answered 503' }
    const items = this.lookupsLag ? [] : held.filter((item) => item.reference === reference)
    return { kind: 'found', items: items.map(({ attemptId: _key, rest: _rest, ...item }) => item) }
  }

  async #answer(kind: MadeCall['kind'], call: Call, rest: unknown): Promise<CallOutcome> {
    const { attemptId, reference, amount } = call
    const nth = this.calls.filter((earlier) => earlier.reference === reference).length
    this.calls.push({ kind, attemptId, reference, amount })
    const answer = (await this.answerTo?.(reference, nth)) ?? this.answers.shift() ?? 'ok'
    const pause = this.retryAfterMs === undefined ? {} : { retryAfterMs: this.retryAfterMs }
    if (answer === 'refuse') return { kind: 'refused', status: 422, detail: 'no such account' }
    if (answer === 'throttle') return { kind: 'retry', detail: 'answered 429', ...pause }
    if (answer === 'drop') return { kind: 'unknown', detail: 'no answer in time' }
    const { id } = this.#hold(kind, call, rest)
    if (answer === 'lose') return { kind: 'unknown', detail: 'the connection broke' }
    return { kind: 'created', id, hostedUrl: kind === 'invoice' ? `https://pay.example/${id}` : null }
  }

  #hold(kind: MadeCall['kind'], { attemptId, reference, amount }: Call, rest: unknown): Held {
    const list = kind === 'invoice' ? this.invoices : this.payouts
    const known = list.find((item) => item.attemptId === attemptId)
    if (known) {
      const same = known.reference === reference && known.amount === amount
      if (!same || JSON.stringify(known.rest) !== JSON.stringify(rest)) {
        throw new Error(`key ${attemptId} came again with another body`)
      }
      return known
    }
    const id = this.nextId(kind === 'invoice' ? 'inv' : 'po', list.length + 1, reference)
    const status = kind === 'invoice' ? 'open' : 'processing'
    const held = { id, reference, amount, currency: CURRENCY, status, attemptId, rest }
    list.push(held)
    return held
  }
}
