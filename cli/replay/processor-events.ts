import { createHash, randomBytes } from 'node:crypto'
import type { App } from '../../server/app.ts'
import { getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { getPayout, listPayouts } from '../../server/payouts/payouts.service.ts'
import { formatMoney } from '../../shared/money.ts'
import { Failure } from '../failures.ts'
import { type ProcessorFixture, readFixture } from './fixture-files.ts'
import type { ReplayOptions, SignedEvent } from './signed-event.ts'

/** An event as the processor would send it about a cycle or payout of ours, signed with its webhook secret. */
export async function prepareProcessorEvent(
  app: App,
  fixture: ProcessorFixture,
  expected: string,
  deliveryId: string,
  options: ReplayOptions,
): Promise<SignedEvent> {
  const values = await subjectValues(app, fixture, options)
  const template = await readFixture('processor', fixture.file)
  const text = template.replace(/\{\{(\w+)\}\}/g, (_whole, name: string) => jsonText(values[name] ?? ''))
  return signAsProcessor(app, { fixture: fixture.name, expected, deliveryId }, Buffer.from(text), options)
}

const SECRETS_MISSING =
  'There is no webhook secret of the processor. Start the service once, or set PROCESSOR_WEBHOOK_SECRETS.'
/** More than any scheme lets a clock differ. */
const STALE_MS = 3_600_000

/** The bytes under the processor's signature, or what `--corrupt` makes of it. */
export function signAsProcessor(
  app: App,
  event: { fixture: string; expected: string | null; deliveryId: string },
  body: Buffer,
  { corrupt }: Pick<ReplayOptions, 'corrupt'>,
): SignedEvent {
  const { scheme, secrets } = app.processorSignature
  const secret = corrupt === 'signature' ? otherSecret(secrets[0]) : secrets[0]
  if (secret === undefined) throw new Failure(SECRETS_MISSING)
  const now = app.platform.clock.now() - (corrupt === 'timestamp' ? STALE_MS : 0)
  const headers = scheme.sign({ deliveryId: event.deliveryId, rawBody: body, secret, now })
  const verdict = scheme.verify({ headers, rawBody: body, secrets: [secret], now })
  // Some schemes read the id from the body, or have none: then the inbox tells a delivery by its hash.
  const signedId = verdict.ok ? verdict.deliveryId : event.deliveryId
  const deliveryId = signedId ?? `sha256:${createHash('sha256').update(body).digest('hex')}`
  return {
    ...event,
    path: '/webhooks/processor',
    rawBody: corrupt === 'body' ? changed(body) : body,
    delivery: { scope: 'processor', deliveryId },
    headers,
  }
}

/** As many random bytes, written alike. */
function otherSecret(secret: string | undefined): string | undefined {
  if (secret === undefined) return undefined
  const other = randomBytes(32).toString('base64')
  return secret.startsWith('whsec_') ? `whsec_${other}` : other
}

/** The same JSON in other bytes. */
export function changed(body: Buffer): Buffer {
  return Buffer.concat([body, Buffer.from(' ')])
}

function jsonText(value: string): string {
  return JSON.stringify(value).slice(1, -1)
}

async function subjectValues(
  app: App,
  { name, needs }: ProcessorFixture,
  options: ReplayOptions,
): Promise<Record<string, string>> {
  const values =
    needs === 'nothing'
      ? {}
      : needs === 'closed cycle' || needs === 'charged cycle'
        ? await cycleValues(app, needs === 'closed cycle' ? 'closed' : 'charged', options.cycle)
        : await payoutValues(app, needs === 'submitted payout' ? 'submitted' : 'paid', options.payout)
  if (values) return values
  throw new Failure(`${name} is about a ${needs} that the processor knows, and there is none.`, {
    code: 'not_found',
  })
}

async function cycleValues(app: App, state: 'closed' | 'charged', id: string | undefined) {
  const cycle =
    id === undefined
      ? (await listCycles(app.platform, { merchantId: null, state, limit: 100, before: null })).find(
          (one) => one.processor_invoice_id !== null,
        )
      : await getCycle(app.database.reader, id)
  if (!cycle?.processor_invoice_id) return null
  return { invoice_id: cycle.processor_invoice_id, amount: formatMoney(cycle.amount_due) }
}

async function payoutValues(app: App, state: 'submitted' | 'paid', id: string | undefined) {
  const payout =
    id === undefined
      ? (await listPayouts(app.platform, null, { state, limit: 1, before: null }))[0]
      : await getPayout(app.platform, id)
  if (!payout?.processor_payout_id) return null
  return {
    payout_id: payout.processor_payout_id,
    reference: payout.id,
    amount: formatMoney(payout.amount),
  }
}
