import { amount, type CliCommand, EXAMPLE_ID, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./billing.actions.ts'))

export function addBillingCommands(program: CliCommand): void {
  const group = program.subcommand('billing', 'billing cycles: list, close, credit, reconcile')
  group
    .subcommand('cycles', 'the newest billing cycles')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .choice('--state <state>', 'open, closed or charged')
    .paged()
    .examples('billing cycles --state open')
    .action(actions.cycles)
  group
    .subcommand(
      'close',
      'close the cycles whose period is over; the running service then asks for their invoices',
    )
    .option('--as-of <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE; now unless given')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--dry-run', 'only show what would be done')
    .examples('billing close --dry-run', 'billing close --as-of 2026-12-01 --yes')
    .action(actions.close)
  group
    .subcommand(
      'credit',
      'grant a merchant a credit, used up by the next closes; the same reference again is one credit',
    )
    .argument('<merchant>', 'id or e-mail')
    .argument('<amount>', 'rupees, such as 1250.50', amount)
    .text('--reference <text>', 'your own number for it', { line: 100, required: true })
    .text('--reason <text>', 'kept in the audit trail', { line: 500, required: true })
    .option(
      '--request <flag>',
      "the credit request that it grants; the merchant's only open one of this amount unless given",
      idOf('flag'),
    )
    .examples(
      "billing credit shop@example.com 1250.50 --reference CR-17 --reason 'order #1001 returned' --yes",
    )
    .action(actions.credit)
  group
    .subcommand(
      'reconcile',
      "compare invoices and payouts with the processor's records and flag what differs, as the schedule does; moves no money",
    )
    .option(
      '--since <time>',
      'settled ones from then on, RFC 3339 or a date; 40 days back unless given (what is open always counts)',
    )
    .examples('billing reconcile', 'billing reconcile --since 2026-11-01 --json')
    .action(actions.reconcileBooks)
  group
    .subcommand('reissue', 'request the invoice of a closed cycle again, after the processor refused it')
    .argument('<cycle>', 'its id, from "billing cycles --state closed"', idOf('billing cycle'))
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .remarks(
      `The processor is asked first what it holds under this cycle; only then a new call with a new key is made.`,
    )
    .examples(`billing reissue ${EXAMPLE_ID} --reason 'address corrected' --yes`)
    .action(actions.reissue)
}
