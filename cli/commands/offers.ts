import type { Command } from 'commander'
import {
  addGroup,
  addPageOptions,
  EXAMPLE_ID,
  exampleText,
  idOf,
  lazy,
  oneOf,
  percentOf,
} from '../command.ts'

const actions = lazy(() => import('./offers.actions.ts'))

const STATUSES = ['draft', 'live', 'paused', 'ended']
const VETTINGS = ['not_required', 'pending', 'approved', 'rejected']

export function addOfferCommands(program: Command): void {
  const group = addGroup(program, 'offers', "merchants' offers: look at them, decide on high commissions")
  addPageOptions(
    group
      .command('list')
      .description('the newest offers, in every status')
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--status <status>', STATUSES.join(', '), oneOf(STATUSES))
      .option('--vetting <state>', VETTINGS.join(', '), oneOf(VETTINGS)),
  )
    .addHelpText('after', exampleText('offers list --vetting pending'))
    .action(actions.list)
  group
    .command('vet')
    .description('approve or reject an offer at its present commission rate')
    .argument('<offer>', 'its id', idOf('offer'))
    .option('--approve', 'holds for this rate and lower ones')
    .option('--reject', 'pauses a live offer; clicks made before still earn')
    .option('--reason <text>', 'kept in the audit trail')
    .option('--rate <percent>', 'refuse when the offer has another rate now', percentOf('--rate'))
    .addHelpText(
      'after',
      exampleText(`offers vet ${EXAMPLE_ID} --approve --rate 35 --reason 'end of season' --yes`),
    )
    .action(actions.vet)
}
