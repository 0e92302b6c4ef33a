import type { Command } from 'commander'
import type { ListedLink } from '../../server/links/listed-links.service.ts'
import { addGroup, exampleText } from '../command.ts'
import { READS, withApp } from '../context.ts'
import { addPageOptions, type PageOptions } from '../pages.ts'
import { nameOf, type Person, peopleOf, scopeOf } from '../people.ts'
import { displayMoney, type Output } from '../terminal/output.ts'

interface ListOptions extends PageOptions {
  merchant?: string
  creator?: string
  offer?: string
}

export function addLinkCommands(program: Command): void {
  const group = addGroup(program, 'links', "creators' affiliate links, with their visits and earnings")
  addPageOptions(
    group
      .command('list')
      .description('the newest links')
      .option('--merchant <user>', 'of one merchant, by id or e-mail')
      .option('--creator <user>', 'of one creator, by id or e-mail')
      .option('--offer <id>', 'of one offer'),
  )
    .addHelpText('after', exampleText('links list --creator sana@example.com'))
    .action((options: ListOptions, command: Command) => list(options, command))
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
      `${link.commissionRate / 100} %`,
      String(link.clicks),
      String(link.acceptedSales),
      displayMoney(link.commissionEarned),
    ]),
  )
}
