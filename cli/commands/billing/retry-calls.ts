import type { Command } from 'commander'
import { CURRENCY } from '../../../shared/money.ts'
import { exampleText, groupOf } from '../../command.ts'
import { confirm, MOVES_MONEY, withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import { nameOf, peopleOf } from '../../people.ts'
import { displayMoney, formatMoney } from '../../terminal/output.ts'

/** What a person does after the processor has finally refused a call: `billing reissue` and `payouts retry`. */
export function addSecondTryCommands(program: Command): void {
  groupOf(program, 'billing')
    .command('reissue')
    .description('request the invoice of a closed cycle again, after the processor refused it')
    .argument('<cycle>', 'its id, from "billing cycles --state closed"')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      `
The processor is asked first what it holds under this cycle; only then a new call with a new key is made.
${exampleText("billing reissue 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --reason 'address corrected' --yes")}`,
    )
    .action((cycle: string, options: { reason?: string }, command: Command) =>
      reissue(cycle, options.reason, command),
    )
  groupOf(program, 'payouts')
    .command('retry')
    .description('send a payout again, after the processor refused it, to the destination in force now')
    .argument('<payout>', 'its id, from "payouts list --state pending"')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      `
The processor is asked first what it holds under this payout; only then a new call with a new key is made. A payout
that failed needs none of this: its amount is in the balance again.
${exampleText("payouts retry 019c3f5e-8a40-7cc2-9d6e-0f8a3c1b2d4e --reason 'IBAN corrected' --yes")}`,
    )
    .action((payout: string, options: { reason?: string }, command: Command) =>
      retry(payout, options.reason, command),
    )
}

async function reissue(cycle: string, reasonText: string | undefined, command: Command): Promise<void> {
  const { readId, readText } = await import('../../arguments.ts')
  const cycleId = readId('billing cycle', cycle)
  const reason = reasonText === undefined ? null : await readText('--reason', reasonText, 2000)
  await withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { getCycle } = await import('../../../server/billing/billing.service.ts')
      const { retryInvoice } = await import('../../../server/billing/invoices.service.ts')
      const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
      const cycle = await getCycle(app.database.reader, cycleId)
      if (!cycle) throw new Failure(`Billing cycle ${cycleId} not found.`, { code: 'not_found' })
      const due = displayMoney(cycle.amount_due)
      await confirm(context, `Ask the processor for another invoice of cycle ${cycleId}, ${due}?`)
      const made = await retryInvoice(app.platform, app.processor, { cycleId, actor: OPERATOR, reason })
      const merchant = (await peopleOf(app, [made.cycle.merchant_id]))(made.cycle.merchant_id)
      const document = {
        billing_cycle_id: cycleId,
        merchant,
        amount_due: formatMoney(made.cycle.amount_due),
        currency: CURRENCY,
        attempt_id: made.attemptId,
        invoice_at_the_processor: made.adopts,
      }
      out.show(document, () => [
        made.adopts === null
          ? `The invoice of ${displayMoney(made.cycle.amount_due)} for ${nameOf(merchant)} is requested again.`
          : `The processor holds invoice ${made.adopts} already: the running service takes it over.`,
      ])
    },
    MOVES_MONEY,
  )
}

async function retry(payout: string, reasonText: string | undefined, command: Command): Promise<void> {
  const { readId, readText } = await import('../../arguments.ts')
  const payoutId = readId('payout', payout)
  const reason = reasonText === undefined ? null : await readText('--reason', reasonText, 2000)
  await withApp(
    command,
    async (context) => {
      const { app, out } = context
      const { getPayout } = await import('../../../server/payouts/payouts.service.ts')
      const { retryPayout } = await import('../../../server/payouts/retry-payout.service.ts')
      const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
      const found = await getPayout(app.platform, payoutId)
      if (!found) throw new Failure(`Payout ${payoutId} not found.`, { code: 'not_found' })
      await confirm(context, `Send payout ${payoutId} again, ${displayMoney(found.amount)}?`)
      const sent = await retryPayout(app.platform, app.processor, { payoutId, actor: OPERATOR, reason })
      const creator = (await peopleOf(app, [sent.payout.creator_id]))(sent.payout.creator_id)
      const document = {
        payout_id: payoutId,
        creator,
        amount: formatMoney(sent.payout.amount),
        currency: CURRENCY,
        attempt_id: sent.attemptId,
        new_destination: sent.newDestination,
        payout_at_the_processor: sent.adopts,
      }
      out.show(document, () => [
        sent.adopts === null
          ? `${displayMoney(sent.payout.amount)} for ${nameOf(creator)} is sent again, to ${sent.newDestination ? 'another' : 'the same'} account.`
          : `The processor holds payout ${sent.adopts} already: the running service takes it over.`,
      ])
    },
    MOVES_MONEY,
  )
}
