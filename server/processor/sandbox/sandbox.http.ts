import { setTimeout as pause } from 'node:timers/promises'
import fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import { formatMoney } from '../../../shared/money.ts'
import { NO_SCHEMAS } from '../../platform/api/no-schemas.ts'
import { isSameText } from '../../platform/crypto/vault.ts'
import type { Delivery } from './deliver-events.ts'
import { acceptCall } from './sandbox.calls.ts'
import type { SandboxObject, SandboxStore } from './sandbox.store.ts'
import { switchChangeSchema } from './switches.ts'

const MAX_BODY_BYTES = 64 * 1024
const KINDS = { '/invoices': 'invoice', '/payouts': 'payout' } as const

interface SandboxServerOptions {
  store: SandboxStore
  delivery: Delivery
  apiKey: string
  now: () => number
  /** Ends stalled calls, without effect. */
  closing: AbortSignal
}

class Refused extends Error {
  readonly statusCode: number
  constructor(statusCode: number, detail: string) {
    super(detail)
    this.name = 'Refused'
    this.statusCode = statusCode
  }
}

/** The generic contract of a processor, plus `/_sandbox/state`, `/_sandbox/switches` and an invoice's page. */
export function createSandboxServer(options: SandboxServerOptions): FastifyInstance {
  const { store, delivery, now } = options
  const server = fastify({
    logger: false,
    bodyLimit: MAX_BODY_BYTES,
    forceCloseConnections: true,
    ...NO_SCHEMAS,
  })
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', { parseAs: 'string' }, server.getDefaultJsonParser('ignore', 'ignore'))
  server.setErrorHandler<FastifyError>((error, _request, reply) => {
    const { statusCode: status = 500, message } = error
    const detail = status < 500 || error instanceof Refused ? message : 'the sandbox failed'
    return reply.code(status).type('application/problem+json').send(JSON.stringify({ status, detail }))
  })
  server.addHook('onRequest', async ({ url, headers }) => {
    if (url.startsWith('/pay/')) return
    if (!isSameText(headers.authorization ?? '', `Bearer ${options.apiKey}`))
      throw new Refused(401, 'wrong API key')
  })
  server.setNotFoundHandler(({ url }) => {
    const path = url.split('?', 1)[0] ?? ''
    if (path in KINDS || path.startsWith('/_sandbox/')) throw new Refused(405, 'method not allowed')
    throw new Refused(404, 'no such path')
  })
  registerCalls(server, options)
  server.get('/_sandbox/state', async () => store.state(now()))
  server.put('/_sandbox/switches', async ({ body }) => {
    const change = switchChangeSchema.safeParse(body)
    if (!change.success) {
      const issue = change.error.issues[0]
      throw new Refused(422, `${issue?.path.join('.') || 'body'}: ${issue?.message}`)
    }
    const switches = store.changeSwitches(change.data)
    delivery.wake()
    return switches
  })
  // The page at `hosted_url`. It takes no payment: the sandbox pays by itself.
  server.get<{ Params: { id: string } }>('/pay/:id', async ({ params }) => {
    store.settle(now())
    const invoice = store.objects.get(params.id)
    if (invoice?.kind !== 'invoice') throw new Refused(404, 'no such invoice')
    return `Sandbox invoice ${invoice.id}\n${formatMoney(invoice.amount)} ${invoice.currency}, ${invoice.status}\n`
  })
  return server
}

function registerCalls(
  server: FastifyInstance,
  { store, delivery, now, closing }: SandboxServerOptions,
): void {
  for (const [path, kind] of Object.entries(KINDS)) {
    server.post(path, async (request, reply) => {
      const key = request.headers['idempotency-key']
      if (typeof key !== 'string' || key === '' || key.length > 200) {
        throw new Refused(400, 'an Idempotency-Key is needed')
      }
      if (store.take('stall_next')) await pause(store.switches().stall_ms, undefined, { signal: closing })
      if (store.take('limit_next')) {
        reply.header('retry-after', '1')
        throw new Refused(429, 'too many calls')
      }
      if (store.take('error_next')) throw new Refused(500, 'a switch makes the sandbox fail')
      const outcome = acceptCall(store, { kind, key, body: request.body, now: now() })
      if (outcome.kind === 'refused') throw new Refused(outcome.status, outcome.detail)
      if (outcome.eventId !== null && store.switches().events_before_answer)
        await delivery.sendNow(outcome.eventId)
      const answer = { id: outcome.object.id, ...hostedUrl(outcome.object, request.host) }
      if (closing.aborted || store.take('lose_next_answers')) reply.hijack().raw.destroy()
      else if (store.take('garble_next_answers')) {
        // Half of the answer, then a broken connection.
        const text = JSON.stringify(answer)
        const { raw } = reply.hijack()
        raw.writeHead(201, { 'content-type': 'application/json', 'content-length': String(text.length) })
        raw.write(text.slice(0, text.length / 2), () => raw.destroy())
      } else reply.code(201).send(answer)
      // After the answer, because a well-behaved processor's event does not overtake it.
      delivery.wake()
      return reply
    })
    server.get<{ Querystring: { reference?: string } }>(path, async ({ query: { reference }, host }) => {
      if (!reference) throw new Refused(400, 'a reference is needed')
      store.settle(now())
      const found = [...store.objects.values()].filter(
        (object) => object.kind === kind && object.reference === reference,
      )
      const items = found.map((object) => ({
        id: object.id,
        reference,
        amount: formatMoney(object.amount),
        currency: object.currency,
        status: object.status,
        ...hostedUrl(object, host),
      }))
      return { items }
    })
  }
}

/** Not stored with the invoice, because the sandbox may listen on another port after a restart. */
function hostedUrl({ kind, id }: SandboxObject, host: string) {
  return kind === 'invoice' ? { hosted_url: `http://${host}/pay/${id}` } : {}
}
