import { jsonOrNull } from '../../shared/json.ts'
import { CURRENCY, displayMoney } from '../../shared/money.ts'
import { basisPointsToPercent } from '../../shared/rates.ts'
import { fieldsText, type Output } from '../terminal/output.ts'
import type { RowColumn } from '../terminal/table.ts'
import type { Replay } from './deliver.ts'
import { resultOf } from './fixture-files.ts'
import type { PickedLink } from './pick-link.ts'
import type { ReplayReport } from './replay.ts'

/**
 * What was sent, what became of it, and whether that is as expected, for people. A terminal has no room for columns that say nothing, nor
 * for ids; for one sale it names the command that explains it.
 */
export function replayLines({ replays, skipped }: ReplayReport, out: Output): string[] {
  const isPiped = out.layout.width === null
  const isUnusual = (replay: Replay) => answersText(replay) !== '200'
  const columns: (RowColumn<Replay> & { show?: boolean })[] = [
    { title: '', cell: verdict },
    { title: 'Fixture', cell: ({ fixture }) => fixture },
    { title: 'Answers', show: isPiped || replays.some(isUnusual), cell: answersText },
    { title: 'Event', show: isPiped, cell: ({ event }) => event?.state ?? null },
    { title: 'Actual', flexible: 'wrap', cell: isPiped ? ledTo : brieflyLedTo },
    { title: 'Expected', show: isPiped, cell: ({ expected }) => expected },
  ]
  const [alone] = replays.length === 1 ? replays : []
  const shown = columns.filter(({ show = true }) => show)
  return [
    ...out.table(replays, shown),
    ...(isPiped ? [] : replays.filter(({ asExpected }) => asExpected === false).flatMap(differenceLines)),
    ...skipped.map(({ fixture, reason }) => `Not sent: ${fixture}, because ${reason}.`),
    ...(alone?.sale && !isPiped ? [`Explain it: ./cli/affiliate sales explain ${saleName(alone.sale)}`] : []),
  ]
}

function differenceLines(replay: Replay): string[] {
  return [`✗ ${replay.fixture}`, `    Expected  ${replay.expected}`, `    Actual    ${brieflyLedTo(replay)}`]
}

/** The order's name where a shell takes it, else the sale's id. */
function saleName({ id, order_name }: NonNullable<Replay['sale']>): string {
  return order_name !== null && /^#?\w+$/.test(order_name) ? `'${order_name}'` : id
}

function verdict({ asExpected }: Replay): string {
  return asExpected === null ? '–' : asExpected ? '✓' : '✗'
}

/** `200`, or `3 × 200, 401`. */
function answersText({ answers }: Replay): string {
  return [...Map.groupBy(answers, ({ status }) => status)]
    .map(([status, same]) => (same.length > 1 ? `${same.length} × ${status}` : String(status)))
    .join(', ')
}

function ledTo(replay: Replay): string {
  const { answers, event, sale } = replay
  if (sale) return `${saleText(sale)} (sale ${sale.id})`
  if (!event) return refusalOf(answers.at(-1)?.body ?? '')
  if (event.reason !== null)
    return event.state === 'pending' ? `tried again later: ${event.reason}` : event.reason
  return fieldsText(event.result === null ? {} : JSON.parse(event.result))
}

function brieflyLedTo(replay: Replay): string {
  const { event, sale } = replay
  if (sale) return saleText(sale)
  const text = ledTo(replay)
  return event === null || event.state === 'pending' ? text : `${event.state.replace('_', ' ')}: ${text}`
}

function saleText(sale: NonNullable<Replay['sale']>): string {
  if (sale.acceptance_status === 'rejected') return `rejected: ${sale.rejection_reason}`
  const { net_amount, commission, platform_fee } = sale
  return `accepted: net ${displayMoney(net_amount)}, commission ${displayMoney(commission)}, fee ${displayMoney(platform_fee)}`
}

/** The service's own words for its refusal. */
function refusalOf(body: string): string {
  const problem = jsonOrNull(body) as { code?: unknown; detail?: unknown } | null
  if (typeof problem?.code === 'string') return `${problem.code}: ${problem.detail}`
  return body.slice(0, 200)
}

export function wireReport({ replays, skipped, link }: ReplayReport) {
  return { items: replays.map(wireReplay), skipped, link: link && wireLink(link.link) }
}

function wireLink({ slug, commission_rate, attribution_window_days, product_ids }: PickedLink['link']) {
  return {
    slug,
    commission_rate: basisPointsToPercent(commission_rate),
    attribution_window_days,
    product_ids,
  }
}

function wireEvent({ id, state, reason, result }: NonNullable<Replay['event']>) {
  return { id, state, reason, result: result === null ? null : JSON.parse(result) }
}

function wireReplay({ fixture, expected, asExpected, deliveryId, answers, event, sale }: Replay) {
  const last = answers.at(-1)
  return {
    fixture,
    expected,
    as_expected: asExpected,
    delivery_id: deliveryId,
    answer: last && { status: last.status, body: jsonOrNull(last.body) ?? last.body },
    answers: answers.map(({ status }) => status),
    event: event && wireEvent(event),
    sale: sale && {
      id: sale.id,
      order_id: sale.order_id,
      order_name: sale.order_name,
      ...resultOf(sale),
      currency: CURRENCY,
    },
  }
}
