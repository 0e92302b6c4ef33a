import { type CliCommand, EXAMPLE_ID, idOf, lazy, percentOf } from '../command.ts'

const actions = lazy(() => import('./offers.actions.ts'))

export function addOfferCommands(program: CliCommand): void {
  const group = program.subcommand('offers', "merchants' offers: look at them, decide on high commissions")
  group
    .subcommand('list', 'the newest offers, in every status')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .choice('--status <status>', 'draft, live, paused, ended')
    .choice('--vetting <state>', 'not_required, pending, approved, rejected')
    .paged()
    .examples('offers list --vetting pending')
    .action(actions.list)
  group
    .subcommand('vet', 'approve or reject an offer at its present commission rate')
    .argument('<offer>', 'its id', idOf('offer'))
    .demand('Pass --approve or --reject.', ({ approve, reject }) => approve !== reject)
    .option('--approve', 'holds for this rate and lower ones')
    .option('--reject', 'pauses a live offer; clicks made before still earn')
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .option('--rate <percent>', 'refuse when the offer has another rate now', percentOf('--rate'))
    .examples(`offers vet ${EXAMPLE_ID} --approve --rate 35 --reason 'end of season' --yes`)
    .action(actions.vet)
}
