import type { Command } from 'commander'
import { addGroup, addPageOptions, exampleText, idOf, lazy } from '../command.ts'

const actions = lazy(() => import('./links.actions.ts'))

export function addLinkCommands(program: Command): void {
  const group = addGroup(program, 'links', "creators' affiliate links, with their visits and earnings")
  addPageOptions(
    group
      .command('list')
      .description('the newest links')
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option('--offer <id>', 'of one offer', idOf('offer')),
  )
    .addHelpText('after', exampleText('links list --creator sana@example.com'))
    .action(actions.list)
  group
    .command('set-coupon')
    .description("give a link a coupon code of its merchant's store, or take its code away")
    .argument('<slug>', 'the last part of the link')
    .argument('[code]', '3 to 40 letters, digits, hyphens or underscores')
    .option('--remove', 'take the code away; orders created before keep it')
    .addHelpText(
      'after',
      exampleText('links set-coupon 4fJq2mXw SANA10', 'links set-coupon 4fJq2mXw --remove'),
    )
<<<<<<< HEAD
    .action((slug: string, code: string | undefined, options: { remove?: boolean }, command: Command) =>
      changeCoupon(slug, code, options.remove ?? false, command),
    )
}

function changeCoupon(
  slug: string,
  text: string | undefined,
  remove: boolean,
  command: Command,
): Promise<void> {
  if ((text === undefined) !== remove) throw wrongUsage('Name a coupon code or pass --remove.')
  return withApp(command, async ({ app, out }) => {
    const { couponCodeInput } = await import('../../shared/schemas/links.ts')
    const { setCoupon } = await import('../../server/links/coupons.service.ts')
    const { OPERATOR } = await import('../../server/flags/audit.service.ts')
    const parsed = remove ? null : couponCodeInput.safeParse(text)
    if (parsed?.success === false) {
      throw wrongUsage('A coupon code has 3 to 40 letters, digits, hyphens or underscores.')
    }
    const code = parsed?.data ?? null
    await setCoupon(app.platform, { slug, actor: OPERATOR, code })
    out.show({ slug, coupon_code: code }, () => [
      code === null ? `Link ${slug} has no coupon code.` : `Link ${slug} has the coupon code ${code}.`,
    ])
  })
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listLinks, wireLink } = await import('../../server/links/listed-links.service.ts')
      const { items: links, next_cursor } = await listLinks(
        app.platform,
        await scopeOf(app, options),
        options,
      )
      const person = await peopleOf(
        app,
        links.map((link) => link.creatorId),
      )
      const items = links.map((link) => ({
        ...wireLink(app.platform, link),
        creator: person(link.creatorId),
      }))
      out.showPage({ items, next_cursor }, () => linkTable(out, links, person))
    },
    READS,
  )
}

function linkTable(out: Output, links: readonly ListedLink[], person: (id: string) => Person): string[] {
  return out.table(
    [
      { title: 'Link' },
      { title: 'Creator', flexible: true },
      { title: 'Offer', flexible: true },
      { title: 'Active' },
      { title: 'Code', optional: true },
      { title: 'Rate', right: true, optional: true },
      { title: 'Clicks', right: true },
      { title: 'Sales', right: true },
      { title: 'Earned', right: true },
    ],
    links.map((link) => [
      link.slug,
      nameOf(person(link.creatorId)),
      link.offer.title,
      link.active ? 'yes' : 'no',
      link.couponCode ?? '–',
      `${link.commissionRate / 100} %`,
      String(link.clicks),
      String(link.acceptedSales),
      displayMoney(link.commissionEarned),
    ]),
  )
=======
    .action(actions.changeCoupon)
>>>>>>> main
}
