import { CURRENCY, displayMoney, formatMoney } from '../shared/money.ts'
import type { Output } from './output.ts'
import type { Replay } from './replay.ts'

/** What was sent and what became of it, for people. */
export function replayLines(replays: readonly Replay[], out: Output): string[] {
  return out.table(
    [
      { title: 'Fixture' },
      { title: 'Answer' },
      { title: 'Event' },
      { title: 'Led to', flexible: true },
      { title: 'The manifest says', flexible: true },
    ],
    replays.map((replay) => [
      replay.fixture,
      String(replay.answer.status),
      replay.event?.state ?? '–',
      ledTo(replay),
      replay.expected,
    ]),
  )
}

function ledTo({ answer, event, sale }: Replay): string {
  if (sale) {
    const { acceptance_status, rejection_reason, net_amount, commission, platform_fee } = sale
    if (acceptance_status === 'rejected') return `rejected: ${rejection_reason} (sale ${sale.id})`
    const amounts = `net ${displayMoney(net_amount)}, commission ${displayMoney(commission)}, fee ${displayMoney(platform_fee)}`
    return `accepted: ${amounts} (sale ${sale.id})`
  }
  if (!event) return answer.body.slice(0, 200)
  if (event.reason !== null)
    return event.state === 'pending' ? `tried again later: ${event.reason}` : event.reason
  const result: Record<string, unknown> = event.result === null ? {} : JSON.parse(event.result)
  return Object.entries(result)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

export function wireReplay({ fixture, expected, deliveryId, answer, event, sale }: Replay) {
  return {
    fixture,
    expected,
    delivery_id: deliveryId,
    answer: { status: answer.status, body: parsed(answer.body) },
    event: event && {
      id: event.id,
      state: event.state,
      reason: event.reason,
      result: event.result === null ? null : JSON.parse(event.result),
    },
    sale: sale && {
      id: sale.id,
      order_id: sale.order_id,
      order_name: sale.order_name,
      acceptance_status: sale.acceptance_status,
      rejection_reason: sale.rejection_reason,
      net_amount: formatMoney(sale.net_amount),
      commission: formatMoney(sale.commission),
      platform_fee: formatMoney(sale.platform_fee),
      currency: CURRENCY,
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
