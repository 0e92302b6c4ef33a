import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import {
  CALL_FAULTS,
  type CallFaultName,
  type CallKind,
  type HeldItem,
  LOOKUP_FAULTS,
  type LookupFaultName,
  type Reply,
} from './call-faults.ts'
import { GENERIC_WIRE, type Wire, type WireMeaning } from './wire.ts'

/** A call that took effect: what the processor would pay out or has billed. */
export interface HeldCall extends HeldItem {
  kind: CallKind
  key: string
  /** The bytes of the call's body. */
  body: string
  /** Epoch ms. */
  doneAt: number
}

/** What reached the processor about one reference, in order. */
export type Seen = { at: number } & (
  | { what: 'call'; key: string; body: string; fault: CallFaultName }
  /** `said`: how many it answered; `null` when the answer said nothing. */
  | { what: 'lookup'; said: number | null }
)

/** How the processor behaves towards one reference; as it should once the lists are empty. */
export interface Behaviour {
  calls: CallFaultName[]
  /** Every call after those ends like this. */
  callsEndAs?: CallFaultName
  lookups: LookupFaultName[]
  /** Every look-up after those fails like this. */
  lookupsEndAs?: LookupFaultName
}

/** What a test has done at certain moments of an exchange. */
export interface Moments {
  /** The processor did it and has not answered. */
  onEventFirst(held: HeldCall): Promise<void>
  /** No answer will come. */
  onSilence(reference: string): void
  /** Epoch ms. */
  now(): number
}

const QUIET: Moments = { onEventFirst: async () => {}, onSilence: () => {}, now: () => 0 }

interface ReplyTo {
  reference: string
  reply: Reply
}

/** A processor over real HTTP with a ledger of what took effect, which misbehaves as planned for each reference. */
export class ProcessorDouble {
  /** The processor's own ledger. */
  readonly held: HeldCall[] = []
  /** What no client of its contract may do. */
  readonly complaints: string[] = []
  /** Ids of another account's invoice and payout, once a test has some. */
  readonly othersIds: Record<CallKind, string> = { invoice: 'd_none', payout: 'd_none' }
  readonly #moments: Moments
  readonly #wire: Wire
  readonly #plans = new Map<string, Behaviour>()
  readonly #seen = new Map<string, Seen[]>()
  readonly #server: Server

  static async open(moments: Moments = QUIET, wire: Wire = GENERIC_WIRE): Promise<ProcessorDouble> {
    const double = new ProcessorDouble(moments, wire)
    await once(double.#server.listen(0, '127.0.0.1'), 'listening')
    return double
  }

  private constructor(moments: Moments, wire: Wire) {
    this.#moments = moments
    this.#wire = wire
    // A connection that it closed while a busy machine stood still would look like a fault.
    this.#server = createServer({ keepAliveTimeout: 0 }, (asked, answer) => {
      this.#serve(asked, answer).catch((error: unknown) => {
        this.complaints.push(String(error))
        answer.destroy()
      })
    })
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  plan(reference: string, behaviour: Behaviour): void {
    this.#plans.set(reference, structuredClone(behaviour))
  }

  seen(reference: string): readonly Seen[] {
    return this.#seen.get(reference) ?? []
  }

  /** Takes the next fault if it is `no_connection`; the client must then call another address. */
  isAway(what: Seen['what'], reference: string): boolean {
    const plan = this.#plans.get(reference)
    const list: string[] = (what === 'call' ? plan?.calls : plan?.lookups) ?? []
    const away =
      list[0] === 'no_connection' ||
      (what === 'lookup' && list.length === 0 && plan?.lookupsEndAs === 'no_connection')
    if (away) list.shift()
    return away
  }

  #note(reference: string, seen: Seen): void {
    this.#seen.set(reference, [...this.seen(reference), seen])
  }

  async #serve(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const meaning = await this.#wire.read({
      method: asked.method ?? '',
      url: new URL(asked.url ?? '/', 'http://double'),
      headers: asked.headers,
      text: await text(asked),
    })
    if (meaning.what === 'other') return this.#give({ reference: '', reply: meaning.reply }, answer)
    const { reference, reply } =
      meaning.what === 'call' ? await this.#takeCall(meaning) : this.#lookUp(meaning)
    await this.#give({ reference, reply: this.#wire.write(reply, meaning) }, answer)
  }

  async #takeCall(call: Extract<WireMeaning, { what: 'call' }>): Promise<ReplyTo> {
    const { kind, key, reference, body } = call
    const plan = this.#plans.get(reference)
    const name = plan?.calls.shift() ?? plan?.callsEndAs ?? 'ok'
    const fault = CALL_FAULTS[name]
    const now = this.#moments.now()
    this.#note(reference, { at: now, what: 'call', key, body, fault: name })
    const held = fault.takesEffect ? this.#takeEffect(call, now) : null
    if (held && held.body !== body) this.complaints.push(`key ${key} came with two bodies`)
    if (held && fault.eventFirst) await this.#moments.onEventFirst(held)
    return {
      reference,
      reply: fault.reply({ id: held?.id ?? 'd_nothing', othersId: this.othersIds[kind], now }),
    }
  }

  /** Like a real processor it knows a key again, and does nothing twice under one; another key is another call. */
  #takeEffect({ kind, key, body }: Extract<WireMeaning, { what: 'call' }>, doneAt: number): HeldCall {
    const known = this.held.find((held) => held.key === key)
    if (known) return known
    const { reference, amount, currency } = JSON.parse(body)
    const id = `d_${kind}_${this.held.length + 1}`
    const status = kind === 'invoice' ? 'open' : 'processing'
    const held = { kind, key, body, id, reference, amount, currency, status, doneAt }
    this.held.push(held)
    return held
  }

  #lookUp({ kind, reference }: Extract<WireMeaning, { what: 'lookup' }>): ReplyTo {
    const plan = this.#plans.get(reference)
    const named = LOOKUP_FAULTS[plan?.lookups.shift() ?? plan?.lookupsEndAs ?? 'fine']
    const held = this.held.filter((one) => one.kind === kind && one.reference === reference)
    const shownFrom = Math.min(...held.map(({ doneAt }) => doneAt)) + (named.atMostMs ?? Infinity)
    const now = this.#moments.now()
    const fault = shownFrom <= now ? LOOKUP_FAULTS.fine : named
    const reply = fault.reply(
      held.map(({ id, amount, currency, status }) => ({ id, reference, amount, currency, status })),
    )
    const says = fault.means !== 'nothing' && reply.kind === 'send'
    this.#note(reference, {
      at: now,
      what: 'lookup',
      said: says ? JSON.parse(reply.body).items.length : null,
    })
    return { reference, reply }
  }

  async #give({ reference, reply }: ReplyTo, answer: ServerResponse): Promise<void> {
    switch (reply.kind) {
      case 'send':
        answer.writeHead(reply.status, reply.headers).end(reply.body)
        return
      case 'silence':
        return this.#moments.onSilence(reference)
      case 'reset':
        if (reply.midBody) {
          answer.writeHead(200, { 'content-length': '1000' })
          await new Promise((sent) => answer.write('{"id":"d_', sent))
        }
        answer.socket?.resetAndDestroy()
        return
      case 'no_connection':
        throw new Error('a call reached a processor that was away')
    }
  }
}
