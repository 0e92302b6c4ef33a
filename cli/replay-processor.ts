import type { App } from '../server/app.ts'
import { getCycle, listCycles } from '../server/billing/billing.service.ts'
import { listPayouts } from '../server/payouts/payouts.service.ts'
import { getPayout } from '../server/payouts/settlement.service.ts'
import { formatMoney } from '../shared/money.ts'
import { Failure } from './failures.ts'
import { type ProcessorFixture, readFixture } from './fixture-files.ts'
import type { ReplayOptions, SignedEvent } from './replay.ts'

/** An event as the processor would send it about a cycle or payout of ours, signed with its webhook secret. */
export async function prepareProcessorEvent(
  app: App,
  fixture: ProcessorFixture,
  expected: string,
  deliveryId: string,
  options: ReplayOptions,
): Promise<SignedEvent> {
  const { scheme, secrets } = app.processorSignature
  const [secret] = secrets
  if (secret === undefined) {
    throw new Failure(
      'There is no webhook secret of the processor. Start the service once, or set PROCESSOR_WEBHOOK_SECRETS.',
    )
  }
  const values = await subjectValues(app, fixture, options)
  const template = await readFixture('processor', fixture.file)
  const text = template.replace(/\{\{(\w+)\}\}/g, (_whole, name: string) => jsonText(values[name] ?? ''))
  const rawBody = Buffer.from(text)
  return {
    fixture: fixture.name,
    path: '/webhooks/processor',
    expected,
    rawBody,
    delivery: { scope: 'processor', deliveryId },
    headers: scheme.sign({ deliveryId, rawBody, secret, now: app.platform.clock.now() }),
  }
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
