import { createHash, randomBytes, randomUUID } from 'node:crypto'
import type { App } from '../../server/app.ts'
import { type CycleRow, getCycle, listCycles } from '../../server/billing/billing.service.ts'
import { type FlagRow, listFlags } from '../../server/flags/flags.service.ts'
import { getPayout, listPayouts, type PayoutRow } from '../../server/payouts/payouts.service.ts'
import { HOUR_MS } from '../../shared/durations.ts'
import { formatMoney } from '../../shared/money.ts'
import { Failure } from '../failures.ts'
import { expectedEvent, type ProcessorFixture, readFixture } from './fixture-files.ts'
import type { Outcome, Sendable, Session, SignedEvent } from './session.ts'

/** An event as the processor would send it about a cycle or payout of ours, signed with its webhook secret. */
export async function prepareProcessorEvent(
  session: Session,
  fixture: ProcessorFixture,
  subject: Subject,
): Promise<SignedEvent> {
  const template = await readFixture('processor', fixture.file)
  const text = template.replace(/\{\{(\w+)\}\}/g, (_whole, name: string) =>
    JSON.stringify(subject.values[name] ?? '').slice(1, -1),
  )
  const isMet = await expectEvent(session.app, fixture, subject, text)
  const expected = { text: expectedEvent(fixture), isMet }
  return signAsProcessor(session, { fixture: fixture.name, expected }, Buffer.from(text))
}

/** The cycle or payout that an event is about, and what its placeholders stand for. */
export interface Subject {
  cycleId?: string
  payoutId?: string
  values: Record<string, string>
}

export const NO_SUBJECT: Subject = { values: {} }

/** Compares the event, its subject and the flags about them with the manifest. Call it before the event is sent. */
async function expectEvent(
  { platform }: App,
  { expect }: ProcessorFixture,
  { cycleId, payoutId }: Subject,
  body: string,
) {
  const { type } = JSON.parse(body) as { type: string }
  const flagsAbout = async (eventId?: string) => {
    const { items } = await listFlags(platform, { status: 'open', limit: MOST_FLAGS })
    return items.filter(({ subject_id: id }) => [cycleId, payoutId, type, eventId].includes(id))
  }
  const known = new Map((await flagsAbout()).map(({ id, evidence }) => [id, evidence]))
  return async ({ event }: Outcome) => {
    if (event?.state !== (expect.at_first ?? expect.event)) return false
    const { reader } = platform.database
    if (cycleId && expect.cycle && (await getCycle(reader, cycleId))?.state !== expect.cycle) return false
    if (payoutId && expect.payout && (await getPayout(reader, payoutId))?.state !== expect.payout)
      return false
    if (expect.at_first !== undefined) return true
    const reason = event.reason?.replaceAll('_', ' ')
    // An open flag that says the same already stays as it is.
    const isRaised = ({ id, evidence, summary }: FlagRow) =>
      known.get(id) !== evidence || (reason !== undefined && summary.includes(reason))
    return (await flagsAbout(event.id)).some(isRaised) === expect.flagged
  }
}

const MOST_FLAGS = 1000
/** More than any scheme lets a clock differ. */
const STALE_MS = HOUR_MS

/** The bytes under the processor's signature, or what `--corrupt` makes of it. The delivery id is that of `--event-id`, or a new one, unless given. */
export function signAsProcessor(
  { app, options: { corrupt, eventId } }: Session,
  event: Sendable,
  body: Buffer,
  givenId: string = eventId ?? randomUUID(),
): SignedEvent {
  const { scheme, secrets } = app.processorSignature
  const [own] = secrets
  if (own === undefined) {
    throw new Failure(
      'There is no webhook secret of the processor. Start the service once, or set PROCESSOR_WEBHOOK_SECRETS.',
    )
  }
  const secret = corrupt === 'signature' ? otherSecret(own) : own
  const now = app.platform.clock.now() - (corrupt === 'timestamp' ? STALE_MS : 0)
  const headers = scheme.sign({ deliveryId: givenId, rawBody: body, secret, now })
  const verdict = scheme.verify({ headers, rawBody: body, secrets: [secret], now })
  // Some schemes read the id from the body, or have none: then the inbox tells a delivery by its hash.
  const signedId = verdict.ok ? verdict.deliveryId : givenId
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
function otherSecret(secret: string): string {
  const other = randomBytes(32).toString('base64')
  return secret.startsWith('whsec_') ? `whsec_${other}` : other
}

/** The same JSON in other bytes. */
export function changed(body: Buffer): Buffer {
  return Buffer.concat([body, Buffer.from(' ')])
}

/** The cycle or payout that a fixture needs, as the operator named it or as it is there; `null` if there is none. */
export async function subjectOf(
  { app, options: { cycle: cycleId, payout: payoutId } }: Session,
  { needs }: ProcessorFixture,
): Promise<Subject | null> {
  const { reader } = app.database
  if (needs === 'nothing') return NO_SUBJECT
  if (needs === 'closed cycle' || needs === 'charged cycle') {
    const state = needs === 'closed cycle' ? 'closed' : 'charged'
    return cycleSubject(cycleId ? await getCycle(reader, cycleId) : await newestCycle(app, state))
  }
  const state = needs === 'submitted payout' ? 'submitted' : 'paid'
  return payoutSubject(payoutId ? await getPayout(reader, payoutId) : await newestPayout(app, state))
}

type IsKnown = (processorId: string) => boolean

/** The newest cycle in this state whose invoice is at the processor, and known to it. */
export async function newestCycle(
  { platform }: App,
  state: 'closed' | 'charged',
  isKnown: IsKnown = () => true,
): Promise<CycleRow | undefined> {
  const cycles = await listCycles(platform, { merchantId: null, state, limit: 100, before: null })
  return cycles.find(({ processor_invoice_id: id }) => id !== null && isKnown(id))
}

/** The newest payout in this state that is at the processor, and known to it. */
export async function newestPayout(
  { platform }: App,
  state: 'submitted' | 'paid',
  isKnown: IsKnown = () => true,
): Promise<PayoutRow | undefined> {
  const payouts = await listPayouts(platform.database.reader, null, { state, limit: 100, before: null })
  return payouts.find(({ processor_payout_id: id }) => id !== null && isKnown(id))
}

/** `null` for one that the processor does not know yet, as for none. */
export function cycleSubject(
  cycle: CycleRow | null | undefined,
  paymentReference = `pay_${randomUUID()}`,
): Subject | null {
  if (!cycle?.processor_invoice_id) return null
  const { id, processor_invoice_id: invoice_id, amount_due } = cycle
  return {
    cycleId: id,
    values: { invoice_id, payment_reference: paymentReference, amount: formatMoney(amount_due) },
  }
}

export function payoutSubject(payout: PayoutRow | null | undefined): Subject | null {
  if (!payout?.processor_payout_id) return null
  const { id, processor_payout_id, amount } = payout
  const values = { payout_id: processor_payout_id, reference: id, amount: formatMoney(amount) }
  return { payoutId: id, values }
}
