import type { Command } from 'commander'
import { Refusal } from '../../../server/platform/api/refusal.ts'
import type { OrderCandidate, SetAsideOrder } from '../../../server/sales/sale-explanation.service.ts'
import { addGroup, exampleText } from '../../command.ts'
import { READS, withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import { type Output, wireTime } from '../../terminal/output.ts'

export function addSaleCommands(program: Command): void {
  const group = addGroup(program, 'sales', 'sales: why one was accepted or rejected, and what came of it')
  group
    .command('explain')
    .description('the whole story of one order, from the click to the payout')
    .argument('<order>', "the store's order id, its name such as '#1001', or the sale's id")
    .option('--store <store>', 'host name or id, where a name stands for orders of several stores')
    .addHelpText(
      'after',
      exampleText("sales explain '#1001' --store my-shop.myshopify.com", 'sales explain 6100000001009'),
    )
    .action((order: string, options: { store?: string }, command: Command) =>
      explain(order, options.store ?? null, command),
    )
}

function explain(order: string, store: string | null, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { explainSale, findOrder, findSetAsideOrders } = await import(
        '../../../server/sales/sale-explanation.service.ts'
      )
      const candidates = await findOrder(app.platform, order, store).catch(async (error: unknown) => {
        if (!(error instanceof Refusal)) throw error
        const setAside = await findSetAsideOrders(app.platform, order, store)
        if (setAside.length === 0) throw error
        return setAside
      })
      if (isSetAside(candidates)) {
        out.show(setAsideDocument(candidates), () => setAsideLines(candidates, out))
        return
      }
      const [only] = candidates
      if (!only || candidates.length > 1) throw ambiguous(order, candidates, out)
      const explanation = await explainSale(app.platform, only.saleId)
      const { storyDocument } = await import('./explanation-document.ts')
      const { storyLines } = await import('./explanation-report.ts')
      out.show(storyDocument(explanation), () => storyLines(explanation, out))
    },
    READS,
  )
}

function isSetAside(found: OrderCandidate[] | SetAsideOrder[]): found is SetAsideOrder[] {
  return found.some((one) => 'reason' in one)
}

function setAsideDocument(orders: readonly SetAsideOrder[]) {
  return {
    decision: null,
    set_aside: orders.map((order) => ({
      event_id: order.eventId,
      order_id: order.orderId,
      order_name: order.orderName,
      store: { id: order.storeId, shop_domain: order.shopDomain },
      reason: order.reason,
      received_at: wireTime(order.receivedAt),
    })),
  }
}

function setAsideLines(orders: readonly SetAsideOrder[], out: Output): string[] {
  return orders.flatMap((order) => [
    `Order ${order.orderName ?? order.orderId} (${order.orderId ?? 'id unknown'}) of ${order.shopDomain ?? order.storeId}`,
    out.style('red', 'SET ASIDE: no sale was decided, because the order could not be read.'),
    ...out.pairs([
      ['Reason', order.reason],
      ['Received', out.time(order.receivedAt)],
      ['Event', order.eventId],
      ['More', `affiliate webhooks show ${order.eventId}`],
    ]),
  ])
}

function ambiguous(order: string, candidates: readonly OrderCandidate[], out: Output): Failure {
  const extra = {
    candidates: candidates.map((candidate) => ({
      sale_id: candidate.saleId,
      order_id: candidate.orderId,
      order_name: candidate.orderName,
      store_id: candidate.storeId,
      shop_domain: candidate.shopDomain,
    })),
  }
  const lines = candidates.map(
    (candidate) =>
      `  ${candidate.orderName ?? ''}  ${candidate.orderId}  ${candidate.shopDomain ?? ''}  ${candidate.storeId}  ${candidate.acceptanceStatus} ${out.time(candidate.createdAt)}`,
  )
  return new Failure(
    `${order} stands for ${candidates.length} orders. Give the order id, or name the store by host name or id with --store.`,
    {
      extra,
      lines,
    },
  )
}
