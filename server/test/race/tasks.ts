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
import { eventOf } from '../../processor/manual/confirmation.rule.ts'
import { confirmTransfers, newFileName } from '../../processor/manual/transfers.service.ts'
import type { Processor } from '../../processor/processor.ts'
import { connectStore } from '../../stores/stores.service.ts'
import { suspendUser } from '../../users/users.service.ts'
import type { CountedReader } from '../testkit/counted-reader.ts'
import { drainStrictly } from '../testkit/strict-drain.ts'

/** What one side of a contest does; plain data, since it goes to another process. */
export type Task =
  | { do: 'close'; merchantId: string; asOf: number }
  | { do: 'schedule' }
  | { do: 'run_payouts' }
  | { do: 'send' }
  | { do: 'drain_until_idle' }
  | { do: 'drain_store'; batch: number }
  /** All that waits, by a worker whose thread has read so many of the orders when the contest begins. */
  | { do: 'drain_pile'; batch: number; readAhead: number }
  /** The web process takes a webhook in. */
  | { do: 'receive'; source: EventSource; scope: string; deliveryId: string; body: string }
  /** The same, and the worker applies it. */
  | { do: 'apply'; source: EventSource; scope: string; deliveryId: string; body: string }
  | { do: 'decide'; merchantId: string; applicationId: string; decision: 'approve' | 'reject' }
  | { do: 'connect'; merchantId: string; shop_domain: string; webhook_secret: string }
  | { do: 'credit'; merchantId: string; amount: number; reference: string }
  | { do: 'flag'; userId: string }
  | { do: 'resolve'; flagId: string; note: string }
  /** `afterMs`: later than the other side by so much. */
  | { do: 'suspend'; userId: string; afterMs?: number }
  | { do: 'reissue'; cycleId: string }
  /** An operator confirms a bank transfer, and its event comes in. */
  | { do: 'confirm'; actor: string; cycleId: string; amount: number; reference: string }
  | { do: 'export_payouts'; actor: string }
  | { do: 'retry_payout'; payoutId: string }

/** What `drain_pile` answers. */
export interface PileDrained {
  events: number
  /** Orders that were taken as the thread had read them. */
  used: number
}

export interface Means {
  platform: Platform
  processor: Processor
  reader: CountedReader
}

/** What a side does before it says that it stands ready. */
export async function prepare({ reader }: Means, task: Task): Promise<void> {
  if (task.do === 'drain_pile') await reader.readAhead(task.readAhead)
}

/** Does one side's part. Resolves to the caller's result. */
export async function perform({ platform, processor, reader }: Means, task: Task): Promise<unknown> {
  const parts = { platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS }
  switch (task.do) {
    case 'close':
      return (await closeDueCycles(platform, { merchantId: task.merchantId, asOf: task.asOf })).length
    case 'schedule':
      // Its jobs run as soon as it starts; stopping waits for them.
      return startScheduler(platform, processor).stop()
    case 'run_payouts':
      return (await runPayouts(platform, processor)).map(({ creatorId, kind }) => `${kind} ${creatorId}`)
    case 'send':
      return makeDueCalls(platform, processor)
    case 'drain_until_idle':
      return drainUntilIdle(parts)
    case 'drain_store':
      return drainStrictly(platform, 'store', task.batch, applyStoreEvents)
    case 'drain_pile':
      return drainPile(platform, reader, task.batch)
    case 'receive':
      return receive(platform, task)
    case 'apply':
      return [await receive(platform, task), await drainUntilIdle(parts)]
    default:
      return decideSomething(platform, processor, task)
  }
}

async function drainPile(platform: Platform, reader: CountedReader, batch: number): Promise<PileDrained> {
  const before = reader.used
  let events = 0
  for (;;) {
    const some = await drainStrictly(platform, 'store', batch, applyStoreEvents, reader)
    events += some
    if (some === 0) return { events, used: reader.used - before }
  }
}

type Decision = Extract<
  Task,
  {
    do:
      | 'confirm'
      | 'export_payouts'
      | 'decide'
      | 'connect'
      | 'credit'
      | 'flag'
      | 'resolve'
      | 'suspend'
      | 'reissue'
      | 'retry_payout'
  }
>

/** What a person asks for. */
async function decideSomething(platform: Platform, processor: Processor, task: Decision): Promise<unknown> {
  const by = { actor: OPERATOR, reason: 'a race' }
  switch (task.do) {
    case 'decide': {
      const { merchantId, applicationId, decision } = task
      const shown = await decideOnApplication(platform, merchantId, applicationId, { decision, reason: null })
      return { status: shown.status, link: shown.link?.id ?? null }
    }
    case 'connect':
      return (await connectStore(platform, task.merchantId, task)).removed_at === null
    case 'credit': {
      const { merchantId, amount, reference } = task
      return (await grantCredit(platform, { merchantId, amount, reference, ...by })).created
    }
    case 'flag':
      return platform.database.transaction((tx) => raiseFlag(platform, tx, flagAbout(task.userId)))
    case 'resolve':
      return (await resolveFlag(platform, { flagId: task.flagId, actor: OPERATOR, note: task.note })).note
    case 'suspend':
      if (task.afterMs) await pause(task.afterMs)
      return (await suspendUser(platform, { userId: task.userId, ...by })).suspended_at !== null
    case 'reissue':
      return (await retryInvoice(platform, processor, { cycleId: task.cycleId, ...by })).attemptId
    case 'confirm':
      return confirmByHand(platform, task)
    case 'export_payouts': {
      const { rows } = await exportPayouts(platform, { actor: task.actor, name: newFileName() })
      return rows.length
    }
    case 'retry_payout':
      return (await retryPayout(platform, processor, { payoutId: task.payoutId, ...by })).attemptId
  }
}

async function confirmByHand(platform: Platform, task: Extract<Task, { do: 'confirm' }>): Promise<string> {
  const { actor, cycleId: about, amount, reference } = task
  const word = { kind: 'invoice', about, outcome: 'paid', amount, reference, reason: null } as const
  const [confirmed] = await confirmTransfers(platform, actor, [word])
  const { verdict = 'unknown', transfer = null } = confirmed ?? {}
  if (transfer && (verdict === 'record' || verdict === 'repeat')) {
    const [deliveryId, body] = [`manual-${transfer.id}`, eventOf(transfer)]
    await receive(platform, { do: 'receive', source: 'processor', scope: 'processor', deliveryId, body })
  }
  return verdict
}

export function flagAbout(userId: string) {
  const subject = { kind: 'shared_mailbox', subjectType: 'user', subjectId: userId } as const
  return { ...subject, summary: 'A race.', evidence: {} }
}

function receive(platform: Platform, task: Extract<Task, { do: 'receive' | 'apply' }>) {
  const { source, scope, deliveryId, body } = task
  const topic = source === 'store' ? 'orders/paid' : null
  return createInboxRecorder(platform).record({
    source,
    scope,
    deliveryId,
    topic,
    rawBody: Buffer.from(body),
  })
}
