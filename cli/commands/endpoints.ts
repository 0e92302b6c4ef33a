import { type CliCommand, EXAMPLE_ID, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./endpoints.actions.ts'))

export function addEndpointCommands(program: CliCommand): void {
  const group = program.subcommand('endpoints', "users' webhook endpoints: list, show, replay, disable")
  group
    .subcommand('list', 'the newest webhook endpoints, and which of them fail')
    .option('--user <user>', 'of one user, by id or e-mail')
    .paged()
    .examples('endpoints list --user shop@example.com')
    .action(actions.list)
  group
    .subcommand('show', 'one webhook endpoint and its newest deliveries')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .examples(`endpoints show ${EXAMPLE_ID}`)
    .action(actions.show)
  group
    .subcommand('replay', 'send events again, also those that the endpoint was never sent; event ids stay')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .option('--since <time>', 'from this time on; the last 30 days unless given')
    .remarks(`The events sale.accepted, sale.rejected and balance.released are kept only for
accounts that had an enabled endpoint for them at the time. Read earlier sales
from the API.`)
    .examples(`endpoints replay ${EXAMPLE_ID} --since 2026-11-20`)
    .action(actions.replay)
  group
    .subcommand('disable', 'stop all deliveries to an endpoint; its owner cannot enable it again')
    .argument('<endpoint>', 'its id', idOf('endpoint'))
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .examples(`endpoints disable ${EXAMPLE_ID} --reason 'reported as abuse' --yes`)
    .action(actions.disable)
}
