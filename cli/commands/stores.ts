import type { Command } from 'commander'
import type { StoreRow } from '../../server/stores/stores.service.ts'
import { addGroup, DEFAULT_ROWS, exampleText, rowLimit } from '../command.ts'
import { confirm, READS, withApp } from '../context.ts'
import { Failure } from '../failures.ts'
import { wireTime } from '../output.ts'
import { nameOf, type Person, peopleOf } from '../people.ts'

interface ListOptions {
  merchant?: string
  limit: number
}

export function addStoreCommands(program: Command): void {
  const group = addGroup(program, 'stores', 'connected shops: look at them, free a squatted domain')
  group
    .command('list')
    .description('the newest stores, removed ones too')
    .option('--merchant <user>', 'of one merchant, by id or e-mail: those in use')
    .option('--limit <n>', 'how many at most', rowLimit, DEFAULT_ROWS)
    .addHelpText('after', exampleText('stores list --merchant shop@example.com'))
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('release')
    .description('take a shop domain from the merchant who connected it, so that its owner can')
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText("stores release my-shop.myshopify.com --reason 'the owner proved it' --yes"),
    )
    .action((domain: string, options: { reason?: string }, command: Command) =>
      release(domain, options.reason, command),
    )
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEveryStore, listStores } = await import('../../server/stores/stores.service.ts')
      const { findUser } = await import('../../server/users/users.service.ts')
      const merchant = options.merchant === undefined ? null : await findUser(app.platform, options.merchant)
      const page = { limit: options.limit }
      const { items, next_cursor } = merchant
        ? await listStores(app.platform, merchant.id, page)
        : await listEveryStore(app.platform, page)
      const person = await peopleOf(
        app,
        items.map((store) => store.merchant_id),
      )
      const wire = items.map((store) => wireStore(store, person(store.merchant_id)))
      out.show({ items: wire, more: next_cursor !== null }, () =>
        out.table(
          [
            { title: 'Domain', flexible: true },
            { title: 'Merchant', flexible: true },
            { title: 'State' },
            { title: 'Since' },
            { title: 'Id' },
          ],
          items.map((store) => [
            store.shop_domain,
            nameOf(person(store.merchant_id)),
            store.removed_at === null ? 'in use' : `removed ${out.time(store.removed_at)}`,
            out.time(store.created_at),
            store.id,
          ]),
        ),
      )
    },
    READS,
  )
}

function wireStore(store: StoreRow, merchant: Person) {
  return {
    id: store.id,
    merchant,
    platform: 'shopify',
    shop_domain: store.shop_domain,
    created_at: wireTime(store.created_at),
    removed_at: wireTime(store.removed_at),
  }
}

async function release(domain: string, reasonText: string | undefined, command: Command): Promise<void> {
  const { readText } = await import('../arguments.ts')
  const reason = reasonText === undefined ? null : await readText('--reason', reasonText, 2000)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { releaseDomain, storeInUse } = await import('../../server/stores/stores.service.ts')
    const { OPERATOR } = await import('../../server/moderation/audit.service.ts')
    const store = await storeInUse(app.platform, domain)
    if (!store) throw new Failure(`No store in use has the domain ${domain}.`, { code: 'not_found' })
    const person = (await peopleOf(app, [store.merchant_id]))(store.merchant_id)
    await confirm(
      context,
      `Take ${store.shop_domain} from ${nameOf(person)}? Its webhook secret is lost; its sales stay.`,
    )
    const released = await releaseDomain(app.platform, store.shop_domain, OPERATOR, reason)
    out.show(wireStore(released, person), () => [
      `${released.shop_domain} is free now; ${nameOf(person)} had connected it.`,
    ])
  })
}
