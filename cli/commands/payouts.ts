import { type CliCommand, EXAMPLE_ID, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./payouts.actions.ts'))
const viewActions = lazy(() => import('./views.actions.ts'))
const processorActions = lazy(() => import('./processor.actions.ts'))

/** `payouts` and `processor`. */
export function addPayoutCommands(program: CliCommand): void {
  const group = program.subcommand('payouts', 'payouts to creators: look at them, start a run')
  group
    .subcommand('list', 'the newest payouts')
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .choice('--state <state>', 'pending, submitted, paid or failed')
    .paged()
    .examples('payouts list --state failed')
    .action(actions.list)
  group
    .subcommand(
      'show',
      'one payout on one screen: where it goes, the calls to the processor, and the cycles whose money it carries',
    )
    .argument('<payout>', 'its id', idOf('payout'))
    .viewed()
    .examples(`payouts show ${EXAMPLE_ID}`)
    .action(viewActions.showPayout)
  group
    .subcommand('run', 'make a payout of each released balance that may go out now, as the schedule does')
    .option('--dry-run', 'only show what would be done')
    .examples('payouts run --dry-run', 'payouts run --yes')
    .action(actions.run)
  group
    .subcommand(
      'retry',
      'send a payout again, after the processor refused it, to the destination in force now',
    )
    .argument('<payout>', 'its id, from "payouts list --state pending"', idOf('payout'))
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .remarks(`The processor is asked first what it holds under this payout; only then a new call with a new key is made. A payout
that failed needs none of this: its amount is in the balance again.`)
    .examples(`payouts retry ${EXAMPLE_ID} --reason 'IBAN corrected' --yes`)
    .action(actions.retry)
  const processor = program.subcommand('processor', 'the payment processor: register for its events')
  processor
    .subcommand(
      'register-webhook',
      'register PUBLIC_BASE_URL/webhooks/processor with Safepay for the events that the service needs, or correct the registration',
    )
    .option('--rotate', 'give the endpoint a new signing secret')
    .remarks(`It prints a new signing secret once. Put it into PROCESSOR_WEBHOOK_SECRETS,
first with any former one after a comma, and restart the service at once: until
then it refuses events that are signed with the new secret, and Safepay gives up
after 31 s. Then run "affiliate doctor" and "affiliate billing reconcile".`)
    .examples('processor register-webhook', 'processor register-webhook --rotate --json')
    .action(processorActions.register)
}
