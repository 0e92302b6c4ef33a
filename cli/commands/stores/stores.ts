import type { Command } from 'commander'
import type { App } from '../../../server/app.ts'
import type { StoreRow } from '../../../server/stores/stores.service.ts'
import { addGroup, exampleText, wholeNumber } from '../../command.ts'
import { confirm, READS, withApp } from '../../context.ts'
import { Failure } from '../../failures.ts'
import { addPageOptions, type PageOptions } from '../../pages.ts'
import { nameOf, type Person, peopleOf } from '../../people.ts'
import { type Output, wireTime } from '../../terminal/output.ts'
import type { CompareOptions } from './compare.ts'

interface ListOptions extends PageOptions {
  merchant?: string
}

interface DecisionOptions {
  merchant?: string
  reason?: string
}

export function addStoreCommands(program: Command): void {
  const group = addGroup(
    program,
    'stores',
    'connected shops: list and check them, decide who may claim a domain',
  )
  addPageOptions(
    group
      .command('list')
      .description('the newest stores, removed ones too')
      .option('--merchant <user>', 'of one merchant, by id or e-mail: those in use'),
  )
    .addHelpText('after', exampleText('stores list --merchant shop@example.com'))
    .action((options: ListOptions, command: Command) => list(options, command))
  group
    .command('check')
    .description(
      'what arrived from a store, what was refused and why, and what to do; exit 1 if something is',
    )
    .argument(
      '[domain]',
      'such as my-shop.myshopify.com; without it, all stores whose deliveries are refused, and unclaimed domains',
    )
    .option('--merchant <user>', 'of one merchant, by id or e-mail')
    .addHelpText('after', exampleText('stores check my-shop.myshopify.com'))
    .action((domain: string | undefined, options: { merchant?: string }, command: Command) =>
      check(domain, options, command),
    )
  group
    .command('compare')
    .description('the paid orders of a Shopify order export that were never reported, rejected, or differ')
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .argument('<file>', 'orders_export.csv as Shopify exports it')
    .option('--limit <n>', 'how many orders each list shows', wholeNumber(1, 100_000), 1000)
    .option('--all', 'list rejected orders without a tracking reference too, instead of counting them')
    .addHelpText('after', exampleText('stores compare my-shop.myshopify.com orders_export.csv'))
    .action((domain: string, file: string, options: CompareOptions, command: Command) =>
      compare(domain, file, options, command),
    )
  group
    .command('release')
    .description("end a merchant's claim on a shop domain; it cannot be connected again until it is allowed")
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .option(
      '--merchant <user>',
      'whose claim, by id or e-mail; needed when several merchants claim the domain',
    )
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText(
      'after',
      exampleText(
        "stores release my-shop.myshopify.com --merchant squatter@example.com --reason 'not the owner' --yes",
      ),
    )
    .action((domain: string, options: DecisionOptions, command: Command) => release(domain, options, command))
  group
    .command('allow')
    .description('let a merchant connect a shop domain again after their claim on it was released')
    .argument('<domain>', 'such as my-shop.myshopify.com')
    .requiredOption('--merchant <user>', 'by id or e-mail')
    .option('--reason <text>', 'kept in the audit trail')
    .addHelpText('after', exampleText('stores allow my-shop.myshopify.com --merchant owner@example.com'))
    .action((domain: string, options: DecisionOptions & { merchant: string }, command: Command) =>
      allow(domain, options, command),
    )
}

function list(options: ListOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { listEveryStore, listStores } = await import('../../../server/stores/stores.service.ts')
      const { findUser } = await import('../../../server/users/users.service.ts')
      const merchant = options.merchant === undefined ? null : await findUser(app.platform, options.merchant)
      const { items, next_cursor } = merchant
        ? await listStores(app.platform, merchant.id, options)
        : await listEveryStore(app.platform, options)
      const person = await peopleOf(
        app,
        items.map((store) => store.merchant_id),
      )
      const { showStores } = await import('../../../server/stores/store-activity.service.ts')
      const seen = await showStores(app.platform, items)
      const wire = items.map((store, index) => ({
        ...seen[index],
        ...wireStore(store, person(store.merchant_id)),
      }))
      out.showPage({ items: wire, next_cursor }, () =>
        out.table(
          [
            { title: 'Domain', flexible: true },
            { title: 'Merchant', flexible: true },
            { title: 'Status' },
            { title: 'Since', optional: true },
            { title: 'Id', optional: true },
          ],
          items.map((store, index) => [
            store.shop_domain,
            nameOf(person(store.merchant_id)),
            stateText(store, seen[index]?.status, out),
            out.shortTime(store.created_at),
            store.id,
          ]),
        ),
      )
    },
    READS,
  )
}

function stateText(store: StoreRow, status: string | undefined, out: Output): string {
  if (store.released_at !== null) return `released ${out.shortTime(store.released_at)}`
  return store.removed_at === null ? (status ?? '') : `removed ${out.shortTime(store.removed_at)}`
}

function wireStore(store: StoreRow, merchant: Person) {
  return {
    id: store.id,
    merchant,
    platform: 'shopify',
    shop_domain: store.shop_domain,
    created_at: wireTime(store.created_at),
    removed_at: wireTime(store.removed_at),
    released_at: wireTime(store.released_at),
  }
}

function check(
  domain: string | undefined,
  { merchant }: { merchant?: string },
  command: Command,
): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      if (domain === undefined) {
        const { checkAllStores } = await import('./check.ts')
        return checkAllStores(app, out)
      }
      const { claimsInUse } = await import('../../../server/stores/remove-store.service.ts')
      const { checkStores } = await import('./check.ts')
      const claims = await claimsOf(app, domain, merchant)
      await checkStores(app, out, claims, (await claimsInUse(app.platform, domain)).length)
    },
    READS,
  )
}

function compare(domain: string, file: string, options: CompareOptions, command: Command): Promise<void> {
  return withApp(
    command,
    async ({ app, out }) => {
      const { compareExport } = await import('./compare.ts')
      await compareExport(app, out, domain, file, options)
    },
    READS,
  )
}

async function release(domain: string, options: DecisionOptions, command: Command): Promise<void> {
  const reason = await reasonOf(options)
  await withApp(command, async (context) => {
    const { app, out } = context
    const { releaseClaim } = await import('../../../server/stores/remove-store.service.ts')
    const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
    const claim = await claimToRelease(app, domain, options.merchant)
    const person = (await peopleOf(app, [claim.merchant_id]))(claim.merchant_id)
    await confirm(
      context,
      `Release ${claim.shop_domain} from ${nameOf(person)}? Its webhook secrets are deleted; its sales stay. Live offers are paused if it is their only store.`,
    )
    const { store, offersPaused } = await releaseClaim(app.platform, {
      domain: claim.shop_domain,
      merchantId: claim.merchant_id,
      actor: OPERATOR,
      reason,
    })
    out.show({ ...wireStore(store, person), offers_paused: offersPaused }, () => [
      `Released ${store.shop_domain} from ${nameOf(person)}.`,
      ...(offersPaused > 0 ? [`Live offers paused, because no store is left: ${offersPaused}.`] : []),
      `To let them connect it again: affiliate stores allow ${store.shop_domain} --merchant ${nameOf(person)}`,
    ])
  })
}

/** The claims in use on a domain, at least one; of one merchant if given. */
async function claimsOf(app: App, domain: string, merchant: string | undefined): Promise<StoreRow[]> {
  const { claimsInUse } = await import('../../../server/stores/remove-store.service.ts')
  const { findUser } = await import('../../../server/users/users.service.ts')
  const claims = await claimsInUse(app.platform, domain)
  const merchantId = merchant === undefined ? null : (await findUser(app.platform, merchant)).id
  const meant = claims.filter((claim) => merchantId === null || claim.merchant_id === merchantId)
  if (meant.length > 0) return meant
  const whose = merchant === undefined ? '' : ` of ${merchant}`
  const { countedUnclaimed } = await import('../../../server/stores/refused-deliveries.service.ts')
  const [refused] = claims.length === 0 ? await countedUnclaimed(app.platform, domain) : []
  const count = refused === undefined ? '' : ` Deliveries for it that were refused: ${refused.deliveries}.`
  throw new Failure(`No store in use${whose} has the domain ${domain}.${count}`, { code: 'not_found' })
}

async function claimToRelease(app: App, domain: string, merchant: string | undefined): Promise<StoreRow> {
  const meant = await claimsOf(app, domain, merchant)
  const [claim] = meant
  if (claim && meant.length === 1) return claim
  const person = await peopleOf(
    app,
    meant.map((one) => one.merchant_id),
  )
  throw new Failure(`${meant.length} merchants claim ${claim?.shop_domain}. Name one with --merchant.`, {
    extra: { candidates: meant.map((one) => wireStore(one, person(one.merchant_id))) },
    lines: meant.map((one) => `  ${one.id}  ${nameOf(person(one.merchant_id))}`),
  })
}

async function allow(
  domain: string,
  options: DecisionOptions & { merchant: string },
  command: Command,
): Promise<void> {
  const reason = await reasonOf(options)
  await withApp(command, async ({ app, out }) => {
    const { allowClaim } = await import('../../../server/stores/remove-store.service.ts')
    const { OPERATOR } = await import('../../../server/flags/audit.service.ts')
    const { findUser } = await import('../../../server/users/users.service.ts')
    const merchant = await findUser(app.platform, options.merchant)
    const store = await allowClaim(app.platform, { domain, merchantId: merchant.id, actor: OPERATOR, reason })
    const person = (await peopleOf(app, [merchant.id]))(merchant.id)
    out.show(wireStore(store, person), () => [`${nameOf(person)} can connect ${store.shop_domain} again.`])
  })
}

async function reasonOf({ reason }: DecisionOptions): Promise<string | null> {
  const { readText } = await import('../../arguments.ts')
  return reason === undefined ? null : readText('--reason', reason, 2000)
}
