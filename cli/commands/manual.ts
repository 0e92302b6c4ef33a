import { amount, type CliCommand, EXAMPLE_ID, lazy, wholeNumber } from '../command.ts'

const actions = lazy(() => import('./manual.actions.ts'))

/** What each command of an admin takes. */
function byAdmin(command: CliCommand): CliCommand {
  return command
    .requiredOption('--as <email>', 'the admin who does it; stands on the audit trail')
    .option(
      '--code <code>',
      'a code of their authenticator app, or a recovery code; asked at a terminal in production',
    )
}

/** What each command takes that sends events. */
function toService(command: CliCommand): CliCommand {
  return byAdmin(command).option(
    '--url <url>',
    'the running service; the address of HOST and PORT unless given',
  )
}

export function addManualCommands(program: CliCommand): void {
  const group = program.subcommand('manual', 'bank transfers by hand, for PROCESSOR=manual')
  group
    .subcommand('due', 'what is to be received and paid, the oldest first, on one screen')
    .option('--limit <n>', 'how many of each at most', wholeNumber(1, 1000), 6)
    .examples('manual due', 'manual due --limit 100')
    .action(actions.due)
  toService(group.subcommand('received', 'a merchant has paid a billing cycle: the cycle is charged'))
    .argument('<cycle>', 'its id, or the number of its invoice')
    .requiredOption('--amount <amount>', 'rupees, as the bank shows them', amount)
    .text('--reference <text>', "the bank's reference of the payment", { line: 64, required: true })
    .examples('manual received INVQ7J2MZ4KXW3B --amount 12500 --reference FT26331ABC --as you@example.com')
    .action(actions.received)
  byAdmin(
    group.subcommand(
      'payout-file',
      'write the payouts that were not exported yet to a CSV file for the bank, with whole IBANs',
    ),
  )
    .argument('[file]', 'a new file; payouts-NAME.csv in this folder unless given')
    .choice('--format <format>', 'csv', 'csv')
    .option('--again <name>', 'write the payouts of this former file again that have no outcome yet')
    .remarks(`Columns: beneficiary_title, iban, amount, reference. The payouts are marked before the file is written, so none ever
stands in two files; if the file was lost, --again NAME writes the same ones. Delete the file once the bank has it.`)
    .examples(
      'manual payout-file --as you@example.com',
      'manual payout-file --again PFA2B3C4D5 --as you@example.com',
    )
    .action(actions.payoutFile)
  toService(
    group.subcommand('paid', "payouts have reached their creators: one, or those of the bank's result file"),
  )
    .argument('[payout]', 'its id, or its number in the payout file')
    .text('--reference <text>', "the bank's reference of the transfer", { line: 64 })
    .option(
      '--from <file>',
      "the bank's result file, CSV: reference, amount, status (paid or failed), and optionally bank_reference, reason",
    )
    .option('--columns <titles>', 'what the file calls its columns: reference=Narration,amount="Txn Amount"')
    .demand(
      'Name a payout with --reference, or a result file with --from.',
      ({ reference, from }, payout) =>
        (payout === undefined) === (reference === undefined) &&
        (payout === undefined) !== (from === undefined),
    )
    .examples(
      'manual paid PAYQ7J2MZ4KXW3B --reference FT26332XYZ --as you@example.com',
      'manual paid --from results.csv --columns reference=Narration --as you@example.com',
    )
    .action(actions.paid)
  toService(
    group.subcommand('failed', 'a payout did not reach its creator: its amount goes back into the balance'),
  )
    .argument('<payout>', 'its id, or its number in the payout file')
    .text('--reason <text>', 'shown to the creator', { line: 500, required: true })
    .examples(`manual failed ${EXAMPLE_ID} --reason 'account closed' --as you@example.com`)
    .action(actions.failed)
  byAdmin(
    group.subcommand(
      'reconcile',
      'compare a bank statement with what was confirmed, and flag what differs; moves no money',
    ),
  )
    .argument('<file>', 'CSV: reference, and amount or credit and debit; optionally description')
    .option('--columns <titles>', 'what the file calls its columns: credit=Deposits,debit=Withdrawals')
    .option(
      '--since <time>',
      'what was confirmed from then on must stand in the statement, RFC 3339 or a date; 40 days back unless given',
    )
    .option('--until <time>', 'and before then; now unless given')
    .examples('manual reconcile statement.csv --since 2026-11-01 --as you@example.com')
    .action(actions.reconcile)
}
