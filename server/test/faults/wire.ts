import type { CallKind, Reply } from './call-faults.ts'

export interface WireRequest {
  method: string
  url: URL
  headers: Record<string, unknown>
  /** The body's text. */
  text: string
}

/** A request in the terms of the generic contract. */
export type WireMeaning =
  | { what: 'call'; kind: CallKind; reference: string; key: string; body: string }
  | { what: 'lookup'; kind: CallKind; reference: string; key: string }
  /** Something else, with its answer. */
  | { what: 'other'; reply: Reply }

/** How a contract looks on the wire. The double itself works in the terms of the generic contract. */
export interface Wire {
  read(request: WireRequest): Promise<WireMeaning>
  /** An answer to a call or look-up, from the generic contract's form. */
  write(reply: Reply, meaning: Exclude<WireMeaning, { what: 'other' }>): Reply
  /** An event, from the generic contract's type and data. */
  event(type: string, data: Record<string, unknown>, deliveryId: string): object
}

const PATHS: Record<string, CallKind> = { '/invoices': 'invoice', '/payouts': 'payout' }

export const GENERIC_WIRE: Wire = {
  async read({ method, url, headers, text }) {
    const kind = PATHS[url.pathname]
    if (!kind) throw new Error(`asked for ${url.pathname}`)
    if (method !== 'POST') {
      return { what: 'lookup', kind, reference: url.searchParams.get('reference') ?? '', key: '' }
    }
    const { reference } = JSON.parse(text) as { reference: string }
    return { what: 'call', kind, reference, key: String(headers['idempotency-key']), body: text }
  },
  write: (reply) => reply,
  event: (type, data) => ({ type, data }),
}
