import { type CliCommand, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./links.actions.ts'))

export function addLinkCommands(program: CliCommand): void {
  const group = program.subcommand('links', "creators' affiliate links, with their visits and earnings")
  group
    .subcommand('list', 'the newest links')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .option('--offer <id>', 'of one offer', idOf('offer'))
    .paged()
    .examples('links list --creator sana@example.com')
    .action(actions.list)
  group
    .subcommand('set-coupon', "give a link a coupon code of its merchant's store, or take its code away")
    .argument('<slug>', 'the last part of the link')
    .argument('[code]', '3 to 40 letters, digits, hyphens or underscores')
    .option('--remove', 'take the code away; orders created before keep it')
    .demand(
      'Name a coupon code or pass --remove.',
      ({ remove }, _slug, code) => (code === undefined) === Boolean(remove),
    )
    .examples('links set-coupon 4fJq2mXw SANA10', 'links set-coupon 4fJq2mXw --remove')
    .action(actions.changeCoupon)
}
