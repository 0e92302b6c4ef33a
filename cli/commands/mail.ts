import { MAIL_EVENT_NAMES } from '../../shared/events.ts'
import { type CliCommand, EXAMPLE_ID, idOf, lazy, oneOf } from '../command.ts'

const actions = lazy(() => import('./mail.actions.ts'))
const jobActions = lazy(() => import('./jobs.actions.ts'))

/** `mail` and `jobs`. */
export function addMailCommands(program: CliCommand): void {
  const group = program.subcommand('mail', 'e-mails to users: look at them, send failed ones again')
  group
    .subcommand('list', 'the newest mails, and why one was not sent')
    .choice('--state <state>', 'queued, sent or failed')
    .option('--user <user>', 'to one user, by id or e-mail')
    .paged()
    .examples('mail list --state failed')
    .action(actions.list)
  group
    .subcommand(
      'show',
      'a mail with its text; the token of its link is hidden once it is sent, and always with SMTP_URL',
    )
    .argument('<mail>', 'id', idOf('mail'))
    .examples(`mail show ${EXAMPLE_ID}`)
    .action(actions.show)
  group
    .subcommand('retry', 'send a mail that failed or waits now')
    .argument('<mail>', 'id', idOf('mail'))
    .examples(`mail retry ${EXAMPLE_ID}`)
    .action(actions.retry)
  group
    .subcommand(
      'preferences',
      'which events a user is notified of by e-mail; turn one off for a user who asks',
    )
    .argument('<user>', 'id or e-mail')
    .option('--off <event>', 'send no more mails about this event', oneOf(MAIL_EVENT_NAMES))
    .option('--on <event>', 'send mails about this event again', oneOf(MAIL_EVENT_NAMES))
    .examples(
      'mail preferences creator@example.com',
      'mail preferences creator@example.com --off payout.paid',
    )
    .action(actions.preferences)
  const jobs = program.subcommand('jobs', 'exports that users started')
  jobs
    .subcommand('list', 'the newest jobs, how far they are, and what went wrong')
    .paged()
    .examples('jobs list', 'jobs list --limit 10 --json')
    .action(jobActions.list)
  jobs
    .subcommand('export', 'write the rows of all users, or of one, to a file; leaves an audit entry')
    .argument(
      '<resource>',
      'sales, payouts, clicks, billing_cycles, applications or pending_orders',
      oneOf(['sales', 'payouts', 'clicks', 'billing_cycles', 'applications', 'pending_orders']),
    )
    .argument('<file>', 'the file to make')
    .option('--user <user>', "only the rows of this user's own lists, by id or e-mail")
    .choice('--format <format>', 'csv or ndjson', 'csv')
    .option('--excel', 'CSV that Excel shows right: byte order mark, order ids as text')
    .option('--cycle <cycle>', 'only the sales of this billing cycle', idOf('billing cycle'))
    .option('--from <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE; inclusive')
    .option('--to <time>', 'the same; exclusive')
    .demand(
      'Pass --cycle with sales only.',
      ({ cycle }, resource) => cycle === undefined || resource === 'sales',
    )
    .demand('Pass --excel with the format csv only.', ({ excel, format }) => !excel || format === 'csv')
    .examples(
      'jobs export sales sales.csv --excel',
      `jobs export sales invoice.csv --cycle ${EXAMPLE_ID}`,
      'jobs export clicks clicks.ndjson --format ndjson --from 2026-11-01',
    )
    .action(jobActions.exportFile)
}
