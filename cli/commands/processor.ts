import { type CliCommand, lazy } from '../command.ts'

const actions = lazy(() => import('./processor.actions.ts'))

export function addProcessorCommands(program: CliCommand): void {
  const group = program.subcommand('processor', 'the payment processor: register for its events')
  group
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
    .action(actions.register)
}
