import { type CliCommand, EXAMPLE_ID, idOf, lazy, percentOf } from '../command.ts'

const actions = lazy(() => import('./offers.actions.ts'))
const applicationActions = lazy(() => import('./applications.actions.ts'))
const viewActions = lazy(() => import('./views.actions.ts'))
const linkActions = lazy(() => import('./links.actions.ts'))

/** `offers`, `applications` and `links`. */
export function addOfferCommands(program: CliCommand): void {
  const group = program.subcommand('offers', "merchants' offers: list, show, vet high commissions")
  group
    .subcommand('list', 'the newest offers, in every status')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .choice('--status <status>', 'draft, live, paused, ended')
    .choice('--vetting <state>', 'not_required, pending, approved, rejected')
    .paged()
    .examples('offers list --vetting pending')
    .action(actions.list)
  group
    .subcommand(
      'show',
      'one offer on one screen: its terms, and its newest statuses, applications, links, sales and open flags',
    )
    .argument('<offer>', 'its id', idOf('offer'))
    .viewed()
    .examples(`offers show ${EXAMPLE_ID}`)
    .action(viewActions.showOffer)
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
  const applications = program.subcommand('applications', "creators' applications to offers")
  applications
    .subcommand('list', 'the newest applications, decided or not')
    .option('--merchant <user>', "to one merchant's offers, by id or e-mail")
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .option('--offer <offer>', 'to one offer', idOf('offer'))
    .choice('--status <status>', 'pending, approved, rejected or withdrawn')
    .paged()
    .examples('applications list --status pending')
    .action(applicationActions.list)
  const links = program.subcommand('links', "creators' affiliate links: list, show, codes, end")
  links
    .subcommand('list', 'the newest links')
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .option('--creator <user>', 'of one creator, by id or e-mail')
    .option('--offer <offer>', 'of one offer', idOf('offer'))
    .paged()
    .examples('links list --creator sana@example.com')
    .action(linkActions.list)
  links
    .subcommand(
      'show',
      'one link on one screen: its terms and figures, and its newest codes, sales and open flags',
    )
    .argument('<slug>', 'the last part of the link')
    .viewed()
    .examples('links show 4fJq2mXw')
    .action(viewActions.showLink)
  links
    .subcommand('set-coupon', "give a link a coupon code of its merchant's store, or take its code away")
    .argument('<slug>', 'the last part of the link')
    .argument('[code]', '3 to 40 letters, digits, hyphens or underscores')
    .option('--remove', 'take the code away; orders created before keep it')
    .demand(
      'Name a coupon code or pass --remove.',
      ({ remove }, _slug, code) => (code === undefined) === Boolean(remove),
    )
    .examples('links set-coupon 4fJq2mXw SANA10', 'links set-coupon 4fJq2mXw --remove')
    .action(linkActions.changeCoupon)
  links
    .subcommand('end', 'end a link for good; clicks before still earn within their window')
    .argument('<slug>', 'the last part of the link')
    .text('--reason <text>', 'for the creator to read, and kept in the audit trail', { lines: 1000 })
    .examples("links end 4fJq2mXw --reason 'fake posts' --yes")
    .action(linkActions.end)
}
