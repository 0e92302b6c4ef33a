import type { Verdict } from '../../server/sales/reprocess.rule.ts'
import {
  type Difference,
  type ReprocessCounts,
  type ReprocessReport,
  type ReprocessTotals,
  reprocessOrders,
} from '../../server/sales/reprocess.service.ts'
import { CURRENCY } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import { nameOf, type Person, peopleIn } from '../lists.ts'
import { GrowingOutput } from '../terminal/list-output.ts'
import { displayMoney, formatMoney, type Output, wireTime } from '../terminal/output.ts'
import { money, type RowColumn } from '../terminal/table.ts'

const columnsOf = (out: Output): RowColumn<Difference>[] => [
  { title: 'Order', flexible: true, cell: ({ order_name, order_id }) => order_name ?? order_id },
  { title: 'Was', flexible: true, cell: ({ before }) => wordsFor(before) },
  { title: 'Would be', flexible: true, cell: ({ after }) => wordsFor(after) },
  { title: 'Billed by', right: true, cell: ({ before, after }) => signed(billed(after) - billed(before)) },
  { title: 'Remark', flexible: true, cell: (difference) => remarksOn(difference).join('; ') || null },
  out.moment('Received', (difference) => difference.received_at),
  { title: 'Event', cell: (difference) => difference.event_id },
  money('Basis was', ({ before }) => before.net_amount),
  money('Basis', ({ after }) => after.net_amount),
  money('Commission was', ({ before }) => before.commission),
  money('Commission', ({ after }) => after.commission),
  money('Fee was', ({ before }) => before.platform_fee),
  money('Fee', ({ after }) => after.platform_fee),
  { title: 'Store', cell: (difference) => difference.store_id },
]

/** Decides stored orders again, and shows what would differ, in words or as JSON, as it comes. */
export async function showReprocessing(
  out: Output,
  platform: Parameters<typeof reprocessOrders>[0],
  asked: { since: number | null; store: string | null; storeIds: string[] | null },
): Promise<void> {
  const { since, store, storeIds } = asked
  const list = new GrowingOutput<Difference>(out, { columns: columnsOf(out), wire: wireDifference })
  list.begin({ dry_run: true, since: wireTime(since), store }, [])
  out.progress('deciding the stored events again')
  const report = await reprocessOrders(platform, {
    since,
    storeIds,
    onDifference: (difference) => list.add(difference),
    onProgress: (done, all) => out.progress(`decided ${done} of ${all} events again`),
  })
  out.endProgress()
  const { merchants, creators, counts } = report
  const person = await peopleIn(platform.database.reader, [...merchants.keys(), ...creators.keys()])
  const totals = { merchants: wireTotals(merchants, person), creators: wireTotals(creators, person) }
  await list.end({ ...totals, counts, currency: CURRENCY }, [
    ...totalLines(report, person, out),
    ...countLines(counts),
    counts.different === 0
      ? 'Nothing would differ.'
      : `${counts.different} would differ. Nothing was changed: books are never rewritten.`,
  ])
}

function wordsFor({ verdict, reason }: Verdict): string {
  if (verdict === 'none') return `no sale: ${reason}`
  return verdict === 'accepted' ? 'accepted' : `rejected: ${reason}`
}

function billed({ commission, platform_fee }: { commission: number; platform_fee: number }): number {
  return commission + platform_fee
}

function signed(amount: number): string {
  return `${amount > 0 ? '+' : ''}${displayMoney(amount)}`
}

function remarksOn({ from, lost, before, after }: Difference): string[] {
  return [
    ...(from === 'receipt' ? ['the raw body was deleted: decided from the receipt'] : []),
    ...lost.map((fact) => `${fact.replaceAll('_', ' ')} was not recorded: today's value is used`),
    ...(before.creator_id !== after.creator_id ? ['for another creator'] : []),
  ]
}

function wireDifference({ from, lost, ...difference }: Difference) {
  const { before, after } = difference
  return {
    ...difference,
    received_at: wireTime(difference.received_at),
    before: wireVerdict(before),
    after: wireVerdict(after),
    commission_difference: formatMoney(after.commission - before.commission),
    platform_fee_difference: formatMoney(after.platform_fee - before.platform_fee),
    judged_from: from,
    facts_not_known: lost,
  }
}

function wireVerdict(verdict: Verdict) {
  const { commission_rate: rate } = verdict
  return {
    verdict: verdict.verdict,
    reason: verdict.reason,
    creator_id: verdict.creator_id,
    net_amount: formatMoney(verdict.net_amount),
    commission_rate: rate === null ? null : basisPointsToPercent(rate),
    commission: formatMoney(verdict.commission),
    platform_fee: formatMoney(verdict.platform_fee),
  }
}

function wireTotals(totals: ReadonlyMap<string, ReprocessTotals>, person: (id: string) => Person) {
  return [...totals].map(([id, { before, after }]) => ({
    ...person(id),
    commission_before: formatMoney(before.commission),
    commission_after: formatMoney(after.commission),
    commission_difference: formatMoney(after.commission - before.commission),
    platform_fee_before: formatMoney(before.platform_fee),
    platform_fee_after: formatMoney(after.platform_fee),
    platform_fee_difference: formatMoney(after.platform_fee - before.platform_fee),
  }))
}

function totalLines(
  { counts, merchants, creators }: ReprocessReport,
  person: (id: string) => Person,
  out: Output,
): string[] {
  if (counts.different === 0) return []
  const rowsOf = (role: string, totals: ReprocessReport['merchants'], amount: typeof billed) =>
    [...totals].map(([id, { before, after }]) => ({ role, id, was: amount(before), now: amount(after) }))
  const rows = [
    ...rowsOf('merchant is billed', merchants, billed),
    ...rowsOf('creator earns', creators, ({ commission }) => commission),
  ]
  const table = out.table(rows, [
    { title: 'Who', cell: ({ role }) => role },
    { title: 'Account', flexible: true, cell: ({ id }) => nameOf(person(id)) },
    money('Of these orders was', ({ was }) => was),
    money('Would be', ({ now }) => now),
    { title: 'Difference', right: true, cell: ({ was, now }) => signed(now - was) },
  ])
  return ['', ...table, '']
}

function countLines(counts: ReprocessCounts): string[] {
  const shown: [number, string][] = [
    [counts.repeats, 'repeated deliveries of an order'],
    [counts.bodies_gone, 'whose raw body was deleted: decided from the receipt, if there is a sale'],
    [counts.unreadable, 'unreadable, then as today'],
    [counts.other_topics, 'of other topics'],
    [counts.conflicting, 'with the delivery id of another body'],
    [counts.waiting, 'not processed yet'],
    [counts.unknown_stores, 'of unknown stores'],
    [counts.forged, 'added or changed in the database: not decided again'],
    [counts.uncertain, "decided with today's value for a fact that was not recorded"],
  ]
  return [
    `${counts.events} events, ${counts.judged} decided again.`,
    ...shown.filter(([number]) => number > 0).map(([number, words]) => `  ${number} ${words}`),
  ]
}
