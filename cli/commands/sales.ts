import { type CliCommand, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./sales.actions.ts'))
const pendingActions = lazy(() => import('./pending-orders.actions.ts'))

/** `sales` and `pending-orders`. */
export function addSaleCommands(program: CliCommand): void {
  const group = program.subcommand('sales', 'sales: list, explain why one was accepted or rejected')
  group
    .subcommand('explain', 'the whole story of one order, from the click and the placement to the payout')
    .argument('<order>', "the store's order id, its name such as '#1001', or the sale's id")
    .option('--store <store>', 'host name or id, where a name stands for orders of several stores')
    .option('--all', 'every check with what it saw, not only those that failed')
    .examples("sales explain '#1001' --store my-shop.myshopify.com", 'sales explain 6100000001009')
    .action(actions.explain)
  group
    .subcommand('list', 'the newest sales, accepted and rejected')
    .choice('--status <status>', 'accepted or rejected')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .demand('Name a merchant or a creator, not both.', ({ merchant, creator }) => !merchant || !creator)
    .option('--offer <offer>', 'of one offer', idOf('offer'))
    .option('--from <time>', 'RFC 3339, or a date: its midnight in BILLING_TIMEZONE; inclusive')
    .option('--to <time>', 'the same; exclusive')
    .paged()
    .examples(
      'sales list --status rejected --from 2026-11-20',
      'sales list --creator sana@example.com --json',
    )
    .action(actions.list)
  const pending = program.subcommand('pending-orders', 'orders that were placed and wait for their payment')
  pending
    .subcommand('list', 'the newest pending orders')
    .choice('--state <state>', 'pending, became_sale, cancelled or expired')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .demand('Name a merchant or a creator, not both.', ({ merchant, creator }) => !merchant || !creator)
    .option('--offer <offer>', 'of one offer', idOf('offer'))
    .option('--from <time>', 'placed from this time: RFC 3339, or a date: its midnight in BILLING_TIMEZONE')
    .option('--to <time>', 'the same; exclusive')
    .paged()
    .examples('pending-orders list --state pending', 'pending-orders list --merchant shop@example.com --json')
    .action(pendingActions.list)
  pending
    .subcommand('rates', 'how much of the pending orders of 90 days became sales, by merchant')
    .examples('pending-orders rates', 'pending-orders rates --json')
    .action(pendingActions.rates)
}
