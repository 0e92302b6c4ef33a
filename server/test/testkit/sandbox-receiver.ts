import type { SandboxOptions } from '../../processor/sandbox/start-sandbox.ts'
import { standardWebhooks } from '../../processor/signatures/choose-scheme.ts'
import { type Answer, callAny } from './service-bed.ts'
import { openWebhookReceiver } from './webhook-receiver.ts'

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
export const API_KEY = 'sk_test'

export interface Received {
  id: string
  type: string
  data: Record<string, string>
}

/** A webhook receiver: keeps validly signed events, and answers with the statuses given for their reference first, then 200. */
export async function startReceiver(statuses: Record<string, number[]> = {}) {
  const receiver = await openWebhookReceiver()
  const received: Received[] = []
  receiver.answer = (response, { id, headers, body, text }) => {
    const signed = { headers: headers as Record<string, string>, rawBody: Buffer.from(text) }
    const verdict = standardWebhooks.verify({ ...signed, secrets: [SECRET], now: Date.now() })
    if (!verdict.ok) {
      response.writeHead(401).end()
      return
    }
    received.push({ ...body, id } as Received)
    response.writeHead(statuses[String(body.data.reference)]?.shift() ?? 200).end()
  }
  return { received, webhookUrl: () => receiver.url, close: async () => receiver.close() }
}

export function sandboxOptions(
  over: Partial<SandboxOptions> & Pick<SandboxOptions, 'webhookUrl'>,
): SandboxOptions {
  return {
    ...{ databasePath: ':memory:', host: '127.0.0.1', port: 0, apiKey: API_KEY, webhookSecret: SECRET },
    ...{ random: () => 0.5, retryBaseMs: 5 },
    ...over,
  }
}

export function invoiceBody(reference = 'cycle-1', amount = '1250.00') {
  return {
    reference,
    amount,
    currency: 'PKR',
    customer: { id: 'm1', email: 'm@example.pk', name: 'Merchant' },
  }
}

export function payoutBody(reference = 'payout-1', amount = '1000.00') {
  return {
    reference,
    amount,
    currency: 'PKR',
    destination: { iban: 'PK36SCBL0000001123456702', account_title: 'Creator' },
  }
}

/** One request to the sandbox with its key and further `headers`. */
export function ask(
  base: string,
  method: string,
  path: string,
  { body, key, headers }: { body?: unknown; key?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const raw = typeof body === 'string' ? { raw: body } : {}
  return callAny(base, method, path, {
    token: API_KEY,
    body,
    ...raw,
    headers: { ...(key !== undefined && { 'idempotency-key': key }), ...headers },
  })
}
