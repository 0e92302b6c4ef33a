import type { Command } from 'commander'
import { addGroup, addPageOptions, EXAMPLE_ID, exampleText, idOf, lazy, oneOf } from '../command.ts'

const actions = lazy(() => import('./flagged.actions.ts'))

const SEVERITIES = ['low', 'medium', 'high']

export function addFlagCommands(program: Command): void {
  const group = addGroup(program, 'flagged', 'what waits for a person: walk through it, list it, resolve it')
    .addHelpText('after', exampleText('flagged', 'flagged list --severity high'))
    // Alone it is the walk; a word that is no command is a slip of the pen.
    .allowExcessArguments()
    .action(actions.walkUnlessMistyped)
  addPageOptions(
    group
      .command('list')
      .description('the newest flags, by default the open ones')
      .option('--kind <kind>', 'of one kind, such as self_purchase')
      .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
      .option('--status <status>', 'open or resolved', oneOf(['open', 'resolved']), 'open'),
  )
    .addHelpText(
      'after',
      exampleText('flagged list --severity high', 'flagged list --status resolved --json'),
    )
    .action(actions.list)
  group
    .command('resolve')
    .description('take a flag off the queue, noting what was found and done')
    .argument('<flag>', 'its id', idOf('flag'))
    .requiredOption('--note <text>', 'what was found and done; kept in the audit trail')
    .addHelpText('after', exampleText(`flagged resolve ${EXAMPLE_ID} --note 'spoke to the creator'`))
    .action(actions.resolve)
  group
    .command('walk')
    .description('go through the open flags one by one at the terminal: look, resolve, suspend, vet or skip')
    .option('--kind <kind>', 'of one kind, such as offer_vetting')
    .option('--severity <severity>', SEVERITIES.join(', '), oneOf(SEVERITIES))
    .addHelpText('after', exampleText('flagged walk --kind offer_vetting'))
    .action(actions.walk)
}
