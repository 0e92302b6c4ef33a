import { setTimeout as pause } from 'node:timers/promises'
import { decideOnApplication } from '../../applications/applications.service.ts'
import { closeDueCycles } from '../../billing/close-cycle.service.ts'
import { grantCredit } from '../../billing/credits.service.ts'
import { retryInvoice } from '../../billing/invoices.service.ts'
import { OPERATOR } from '../../flags/audit.service.ts'
import { raiseFlag, resolveFlag } from '../../flags/flags.service.ts'
import type { EventSource } from '../../inbox/event-states.ts'
import { createInboxRecorder } from '../../inbox/intake.service.ts'
import { applyStoreEvents } from '../../jobs/apply-store-events.ts'
import { makeDueCalls } from '../../jobs/processor-calls.ts'
import { startScheduler } from '../../jobs/scheduler.ts'
import { drainUntilIdle } from '../../jobs/worker.ts'
import { exportPayouts } from '../../payouts/payout-file.service.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { retryPayout } from '../../payouts/payouts.service.ts'
import type { Platform } from '../../platform/platform.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { createHttpProcessor } from '../../processor/http-processor.ts'
import { eventOf } from '../../processor/manual/confirmation.rule.ts'
import { confirmTransfers, newFileName } from '../../processor/manual/transfers.service.ts'
import type { Processor } from '../../processor/processor.ts'
import { connectStore } from '../../stores/stores.service.ts'
import { suspendUser } from '../../users/users.service.ts'
import type { CountedReader } from '../testkit/counted-reader.ts'
import { drainStrictly } from '../testkit/strict-drain.ts'

export interface Means {
  platform: Platform
  processor: Processor
  reader: CountedReader
}

/** The real client of the processor at this address. */
export function clientOf(url: string, now: () => number) {
  return createHttpProcessor({ url, apiKey: 'sk_double', timeoutMs: 10_000, now })
}

/** What `drain_pile` answers. */
export interface PileDrained {
  events: number
  /** Orders that were taken as the thread had read them. */
  used: number
}

/** A webhook as the web process takes it in. */
interface Delivery {
  source: EventSource
  scope: string
  deliveryId: string
  body: string
}

const BY = { actor: OPERATOR, reason: 'a race' }

/** What one side of a contest does. */
const TASKS = {
  close: async ({ platform }: Means, task: { merchantId: string; asOf: number }) =>
    (await closeDueCycles(platform, task)).length,
  // Its jobs run as soon as it starts; stopping waits for them.
  schedule: ({ platform, processor }: Means) => startScheduler(platform, processor).stop(),
  run_payouts: async ({ platform, processor }: Means) =>
    (await runPayouts(platform, processor)).map(({ creatorId, kind }) => `${kind} ${creatorId}`),
  send: ({ platform, processor }: Means) => makeDueCalls(platform, processor),
  drain_store: ({ platform }: Means, { batch }: { batch: number }) =>
    drainStrictly(platform, 'store', batch, applyStoreEvents),
  /** All that waits, by a worker whose thread has read so many of the orders when the contest begins. */
  async drain_pile({ platform, reader }: Means, { batch }: { batch: number; readAhead: number }) {
    const before = reader.used
    let events = 0
    for (;;) {
      const some = await drainStrictly(platform, 'store', batch, applyStoreEvents, reader)
      events += some
      if (some === 0) return { events, used: reader.used - before } satisfies PileDrained
    }
  },
  receive: ({ platform }: Means, delivery: Delivery) => receive(platform, delivery),
  /** The same, and the worker applies it. */
  async apply({ platform, processor }: Means, delivery: Delivery) {
    await receive(platform, delivery)
    await drainUntilIdle({ platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS })
  },
  async decide(
    { platform }: Means,
    task: { merchantId: string; applicationId: string; decision: 'approve' | 'reject' },
  ) {
    const answer = { decision: task.decision, reason: null }
    const shown = await decideOnApplication(platform, task.merchantId, task.applicationId, answer)
    return { status: shown.status, link: shown.link?.id ?? null }
  },
  connect: async (
    { platform }: Means,
    task: { merchantId: string; shop_domain: string; webhook_secret: string },
  ) => (await connectStore(platform, task.merchantId, task)).removed_at === null,
  async credit({ platform }: Means, task: { merchantId: string; amount: number; reference: string }) {
    const { merchantId, amount, reference } = task
    return (await grantCredit(platform, { merchantId, amount, reference, ...BY })).created
  },
  flag: ({ platform }: Means, { userId }: { userId: string }) =>
    platform.database.transaction((tx) => raiseFlag(platform, tx, flagAbout(userId))),
  resolve: async ({ platform }: Means, { flagId, note }: { flagId: string; note: string }) =>
    (await resolveFlag(platform, { flagId, actor: OPERATOR, note })).note,
  /** `afterMs`: later than the other side by so much. */
  async suspend({ platform }: Means, { userId, afterMs }: { userId: string; afterMs?: number }) {
    if (afterMs) await pause(afterMs)
    return (await suspendUser(platform, { userId, ...BY })).suspended_at !== null
  },
  reissue: async ({ platform, processor }: Means, { cycleId }: { cycleId: string }) =>
    (await retryInvoice(platform, processor, { cycleId, ...BY })).attemptId,
  retry_payout: async ({ platform, processor }: Means, { payoutId }: { payoutId: string }) =>
    (await retryPayout(platform, processor, { payoutId, ...BY })).attemptId,
  export_payouts: async ({ platform }: Means, { actor }: { actor: string }) =>
    (await exportPayouts(platform, { actor, name: newFileName() })).rows.length,
  /** An operator confirms a bank transfer, and its event comes in. */
  async confirm(
    { platform }: Means,
    task: { actor: string; cycleId: string; amount: number; reference: string },
  ) {
    const { actor, cycleId: about, amount, reference } = task
    const word = { kind: 'invoice', about, outcome: 'paid', amount, reference, reason: null } as const
    const [confirmed] = await confirmTransfers(platform, actor, [word])
    const { verdict = 'unknown', transfer = null } = confirmed ?? {}
    if (transfer && (verdict === 'record' || verdict === 'repeat')) {
      const [deliveryId, body] = [`manual-${transfer.id}`, eventOf(transfer)]
      await receive(platform, { source: 'processor', scope: 'processor', deliveryId, body })
    }
    return verdict
  },
}

type Tasks = typeof TASKS
/** Plain data, since it goes to another process. */
export type Task = {
  [Name in keyof Tasks]: { do: Name } & (Tasks[Name] extends (means: Means, task: infer Given) => unknown
    ? unknown extends Given
      ? object
      : Given
    : object)
}[keyof Tasks]

/** What a side does before it says that it stands ready. */
export async function prepare({ reader }: Means, task: Task): Promise<void> {
  if (task.do === 'drain_pile') await reader.readAhead(task.readAhead)
}

/** Does one side's part. Resolves to the caller's result. */
export function perform(means: Means, task: Task): Promise<unknown> {
  return (TASKS[task.do] as (means: Means, task: Task) => Promise<unknown>)(means, task)
}

export function flagAbout(userId: string) {
  const subject = { kind: 'shared_mailbox', subjectType: 'user', subjectId: userId } as const
  return { ...subject, summary: 'A race.', evidence: {} }
}

function receive(platform: Platform, { source, scope, deliveryId, body }: Delivery) {
  const topic = source === 'store' ? 'orders/paid' : null
  const rawBody = Buffer.from(body)
  return createInboxRecorder(platform).record({ source, scope, deliveryId, topic, rawBody })
}
