import { type CliCommand, EXAMPLE_ID, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./flagged.actions.ts'))
const auditActions = lazy(() => import('./audit.actions.ts'))

/** `flagged` and `audit`. */
export function addFlagCommands(program: CliCommand): void {
  const group = program
    .subcommand('flagged', 'what waits for a person: walk through, list, resolve')
    .examples('flagged', 'flagged list --severity high')
    // Alone it is the walk; a word that is no command is a slip of the pen.
    .allowExcessArguments()
    .action(actions.walkUnlessMistyped)
  group
    .subcommand('list', 'the newest flags, by default the open ones')
    .option('--kind <kind>', 'of one kind, such as self_purchase')
    .choice('--severity <severity>', 'low, medium, high')
    .choice('--status <status>', 'open or resolved', 'open')
    .option('--subject <subject>', 'about one account, offer, link, sale or payout')
    .paged()
    .examples('flagged list --severity high', 'flagged list --status resolved --json')
    .action(actions.list)
  group
    .subcommand('resolve', 'take a flag off the queue, noting what was found and done')
    .argument('<flag>', 'its id', idOf('flag'))
    .text('--note <text>', 'what was found and done; kept in the audit trail', {
      lines: 2000,
      required: true,
    })
    .examples(`flagged resolve ${EXAMPLE_ID} --note 'spoke to the creator'`)
    .action(actions.resolve)
  group
    .subcommand(
      'walk',
      'go through the open flags one by one at the terminal: look, resolve, suspend, vet or skip',
    )
    .option('--kind <kind>', 'of one kind, such as offer_vetting')
    .choice('--severity <severity>', 'low, medium, high')
    .examples('flagged walk --kind offer_vetting')
    .action(actions.walk)
  const audit = program.subcommand('audit', 'who did what with money and people, and why')
  audit
    .subcommand('list', 'the newest entries')
    .option('--actor <user>', 'of one admin, by id or e-mail, or "operator" for the command line')
    .option(
      '--subject <subject>',
      'about one account, by id or e-mail, or one offer, link, sale, store …, by id',
    )
    .option('--since <time>', 'of this moment and later: RFC 3339, or a date')
    .paged()
    .remarks(
      `At a terminal the table leaves out what does not fit; --json and a pipe show what was before and after.`,
    )
    .examples('audit list --since 2026-11-20', 'audit list --actor operator --json')
    .action(auditActions.list)
}
