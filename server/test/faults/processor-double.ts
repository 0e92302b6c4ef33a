import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
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

export interface ProcessorDouble {
  readonly url: string
  /** The processor's own ledger. */
  readonly held: HeldCall[]
  /** What no client of its contract may do. */
  readonly complaints: string[]
  /** Ids of another account's invoice and payout, once a test has some. */
  readonly othersIds: Record<CallKind, string>
  plan(reference: string, behaviour: Behaviour): void
  /** Takes the next fault if it is `no_connection`; the client must then call another address. */
  isAway(what: Seen['what'], reference: string): boolean
  seen(reference: string): readonly Seen[]
  close(): Promise<void>
}

const QUIET: Moments = { onEventFirst: async () => {}, onSilence: () => {}, now: () => 0 }

/** A processor over real HTTP with a ledger of what took effect, which misbehaves as planned for each reference. */
export async function openProcessorDouble(
  moments: Moments = QUIET,
  wire: Wire = GENERIC_WIRE,
): Promise<ProcessorDouble> {
  const state = new State(moments)
  // A connection that it closed while a busy machine stood still would look like a fault.
  const server = createServer({ keepAliveTimeout: 0 }, (asked, answer) => {
    serve(state, wire, asked, answer).catch((error: unknown) => {
      state.complaints.push(String(error))
      answer.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the processor does not listen')
  return Object.assign(state, {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}

class State {
  readonly held: HeldCall[] = []
  readonly complaints: string[] = []
  readonly othersIds: Record<CallKind, string> = { invoice: 'd_none', payout: 'd_none' }
  readonly moments: Moments
  readonly #plans = new Map<string, Behaviour>()
  readonly #seen = new Map<string, Seen[]>()

  constructor(moments: Moments) {
    this.moments = moments
  }

  plan(reference: string, behaviour: Behaviour): void {
    this.#plans.set(reference, structuredClone(behaviour))
  }

  seen(reference: string): readonly Seen[] {
    return this.#seen.get(reference) ?? []
  }

  noteCall(reference: string, call: { key: string; body: string; fault: CallFaultName }): void {
    this.#note(reference, { at: this.moments.now(), what: 'call', ...call })
  }

  noteLookup(reference: string, said: number | null): void {
    this.#note(reference, { at: this.moments.now(), what: 'lookup', said })
  }

  #note(reference: string, seen: Seen): void {
    this.#seen.set(reference, [...this.seen(reference), seen])
  }

  isAway(what: Seen['what'], reference: string): boolean {
    const plan = this.#plans.get(reference)
    const list: string[] = (what === 'call' ? plan?.calls : plan?.lookups) ?? []
    const away =
      list[0] === 'no_connection' ||
      (what === 'lookup' && list.length === 0 && plan?.lookupsEndAs === 'no_connection')
    if (away) list.shift()
    return away
  }

  nextCall(reference: string): CallFaultName {
    const plan = this.#plans.get(reference)
    return plan?.calls.shift() ?? plan?.callsEndAs ?? 'ok'
  }

  nextLookup(reference: string): LookupFaultName {
    const plan = this.#plans.get(reference)
    return plan?.lookups.shift() ?? plan?.lookupsEndAs ?? 'fine'
  }

  /** Like a real processor it knows a key again, and does nothing twice under one; another key is another call. */
  takeEffect(kind: CallKind, key: string, body: string): HeldCall {
    const known = this.held.find((held) => held.key === key)
    if (known) return known
    const { reference, amount, currency } = JSON.parse(body)
    const id = `d_${kind}_${this.held.length + 1}`
    const status = kind === 'invoice' ? 'open' : 'processing'
    const doneAt = this.moments.now()
    const held = { kind, key, body, id, reference, amount, currency, status, doneAt }
    this.held.push(held)
    return held
  }
}

async function serve(
  state: State,
  wire: Wire,
  asked: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const meaning = await wire.read({
    method: asked.method ?? '',
    url: new URL(asked.url ?? '/', 'http://double'),
    headers: asked.headers,
    text: await text(asked),
  })
  if (meaning.what === 'other') return give(state, { reference: '', reply: meaning.reply }, answer)
  const { reference, reply } =
    meaning.what === 'call' ? await takeCall(state, meaning) : lookUp(state, meaning)
  await give(state, { reference, reply: wire.write(reply, meaning) }, answer)
}

interface ReplyTo {
  reference: string
  reply: Reply
}

async function takeCall(
  state: State,
  { kind, key, reference, body }: Extract<WireMeaning, { what: 'call' }>,
): Promise<ReplyTo> {
  const name = state.nextCall(reference)
  const fault = CALL_FAULTS[name]
  state.noteCall(reference, { key, body, fault: name })
  const held = fault.takesEffect ? state.takeEffect(kind, key, body) : null
  if (held && held.body !== body) state.complaints.push(`key ${key} came with two bodies`)
  if (held && fault.eventFirst) await state.moments.onEventFirst(held)
  const context = { id: held?.id ?? 'd_nothing', othersId: state.othersIds[kind], now: state.moments.now() }
  return { reference, reply: fault.reply(context) }
}

function lookUp(state: State, { kind, reference }: Extract<WireMeaning, { what: 'lookup' }>): ReplyTo {
  const named = LOOKUP_FAULTS[state.nextLookup(reference)]
  const held = state.held.filter((one) => one.kind === kind && one.reference === reference)
  const shownFrom = Math.min(...held.map(({ doneAt }) => doneAt)) + (named.atMostMs ?? Infinity)
  const fault = shownFrom <= state.moments.now() ? LOOKUP_FAULTS.fine : named
  const items = held.map(({ id, amount, currency, status }) => ({ id, reference, amount, currency, status }))
  const reply = fault.reply(items)
  const says = fault.means !== 'nothing' && reply.kind === 'send'
  state.noteLookup(reference, says ? JSON.parse(reply.body).items.length : null)
  return { reference, reply }
}

async function give(state: State, { reference, reply }: ReplyTo, answer: ServerResponse): Promise<void> {
  switch (reply.kind) {
    case 'send':
      answer.writeHead(reply.status, reply.headers).end(reply.body)
      return
    case 'silence':
      return state.moments.onSilence(reference)
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
