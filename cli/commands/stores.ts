import { type CliCommand, lazy, wholeNumber } from '../command.ts'

const actions = lazy(() => import('./stores.actions.ts'))

export function addStoreCommands(program: CliCommand): void {
  const group = program.subcommand('stores', 'connected shops: list, check, decide who may claim one')
  group
    .subcommand('list', 'the newest stores, removed ones too')
    .option('--merchant <user>', 'of one merchant, by id or e-mail: those in use')
    .paged()
    .examples('stores list --merchant shop@example.com')
    .action(actions.list)
  group
    .subcommand(
      'check',
      'what arrived from a store, what was refused and why, and what to do; exit 1 if something is',
    )
    .argument(
      '[domain]',
      'such as my-shop.myshopify.com; without it, all stores whose deliveries are refused, and unclaimed domains',
    )
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .examples('stores check my-shop.myshopify.com')
    .action(actions.check)
  group
    .subcommand(
      'compare',
      'the paid orders of a Shopify order export that were never reported, rejected, or differ',
    )
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .argument('<file>', 'orders_export.csv as Shopify exports it')
    .option('--limit <n>', 'how many orders each list shows', wholeNumber(1, 100_000), 1000)
    .option('--all', 'list rejected orders without a tracking reference too, instead of counting them')
    .examples('stores compare my-shop.myshopify.com orders_export.csv')
    .action(actions.compare)
  group
    .subcommand(
      'release',
      "end a merchant's claim on a shop domain; it cannot be connected again until it is allowed",
    )
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .option(
      '--merchant <user>',
      'whose claim, by id or e-mail; needed when several merchants claim the domain',
    )
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .examples(
      "stores release my-shop.myshopify.com --merchant squatter@example.com --reason 'not the owner' --yes",
    )
    .action(actions.release)
  group
    .subcommand('allow', 'let a merchant connect a shop domain again after their claim on it was released')
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .requiredOption('--merchant <user>', 'by id or e-mail')
    .text('--reason <text>', 'kept in the audit trail', { lines: 2000 })
    .examples('stores allow my-shop.myshopify.com --merchant owner@example.com')
    .action(actions.allow)
}
