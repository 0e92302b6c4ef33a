import * as assert from 'uvu/assert'
import { drainUntilIdle } from '../../jobs/worker.ts'
import { runPayouts } from '../../payouts/payout-run.service.ts'
import { GENERIC_PROCESSOR_EVENTS } from '../../processor/events.settings.ts'
import { eventOf } from '../../processor/manual/confirmation.rule.ts'
import { createManualProcessor } from '../../processor/manual/manual-processor.ts'
import {
  confirmTransfers,
  type TransferRow,
  transfersNamed,
} from '../../processor/manual/transfers.service.ts'
import { closeOpenCycle, type Marketplace, type Shop } from './marketplace.ts'

export const MANUAL_SETTINGS = {
  PROCESSOR: 'manual',
  MANUAL_PAYMENT_INSTRUCTIONS: 'Chenab Bank, PK36SCBL0000001123456702\\nReference: the number of the invoice',
  PROCESSOR_WEBHOOK_SECRETS: `whsec_${Buffer.alloc(24, 9).toString('base64')}`,
}

/** A marketplace whose processor is the manual one. */
export function manualMarket(market: Marketplace) {
  const { platform } = market
  const processor = createManualProcessor(platform)
  const drain = () => drainUntilIdle({ platform, processor, eventRules: GENERIC_PROCESSOR_EVENTS })
  const transferOf = async (name: string): Promise<TransferRow> => {
    const [row] = await transfersNamed(platform.database.reader, [name])
    assert.ok(row, `${name} has no transfer`)
    return row
  }
  /** Puts the event of a settled transfer into the inbox and applies it. */
  const say = async (transfer: TransferRow): Promise<void> => {
    await market.processorSends(JSON.parse(eventOf(transfer)), `manual-${transfer.id}`)
    await drain()
  }
  return {
    processor,
    drain,
    transferOf,
    /** Sells once and closes the cycle; answers its id. */
    async invoice(shop: Shop, link: Parameters<Marketplace['order']>[1], price = 800_000): Promise<string> {
      await market.order(shop, link, price)
      await drain()
      const id = await closeOpenCycle(platform, shop)
      await drain()
      return id
    },
    /** Pays out what is released; answers the ids of the payouts. */
    async payOut(): Promise<string[]> {
      const outcomes = await runPayouts(platform, processor)
      await drain()
      return outcomes.flatMap((one) =>
        one.kind === 'paid_out' && one.payoutId !== null ? [one.payoutId] : [],
      )
    },
    /** Confirms an invoice as paid, and sends its event. */
    async settle(cycleId: string, actor: string): Promise<void> {
      const { number: about, amount } = await transferOf(cycleId)
      const reference = `FT ${about}`
      const word = { kind: 'invoice', about, outcome: 'paid', amount, reference, reason: null } as const
      await confirmTransfers(platform, actor, [word])
      await say(await transferOf(cycleId))
    },
    say,
  }
}

export type ManualMarket = ReturnType<typeof manualMarket>
