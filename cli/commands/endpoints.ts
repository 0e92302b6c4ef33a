import type { Command } from 'commander'
import { addGroup, addPageOptions, EXAMPLE_ID, exampleText, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./endpoints.actions.ts'))

export function addEndpointCommands(program: Command): void {
  const group = addGroup(program, 'endpoints', "users' webhook endpoints: look at them, send again, disable")
  addPageOptions(
    group
      .command('list')
      .description('the newest webhook endpoints, and which of them fail')
      .option('--user <user>', 'of one user, by id or e-mail'),
  )
    .addHelpText('after', exampleText('endpoints list --user shop@example.com'))
    .action(actions.list)
  group
    .command('show')
    .description('one webhook endpoint and its newest deliveries')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .addHelpText('after', exampleText(`endpoints show ${EXAMPLE_ID}`))
    .action(actions.show)
  group
    .command('replay')
    .description('send events again, also those that the endpoint was never sent; event ids stay')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .option('--since <time>', 'from this time on; the last 30 days unless given')
    .addHelpText(
      'after',
      '\nThe events sale.accepted, sale.rejected and balance.released are kept only for\naccounts that had an enabled endpoint for them at the time. Read earlier sales\nfrom the API.',
    )
    .addHelpText('after', exampleText(`endpoints replay ${EXAMPLE_ID} --since 2026-11-20`))
    .action(actions.replay)
  group
    .command('disable')
    .description('stop all deliveries to an endpoint; its owner cannot enable it again')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText('after', exampleText(`endpoints disable ${EXAMPLE_ID} --reason 'reported as abuse' --yes`))
    .action(actions.disable)
}
