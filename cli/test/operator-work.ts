import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEndpoint } from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import { authorize } from '../../server/test/authorization/scene.ts'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { addLiveOffer } from '../../server/test/testkit/listings.ts'
import type { Shop } from '../../server/test/testkit/marketplace.ts'
import { queuedMail } from '../../server/test/testkit/people.ts'
import { rowOf } from '../../server/test/testkit/rows.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import type { Books } from './books.ts'
import type { ProcessorStub } from './processor-stub.ts'
import type { Ended } from './run-affiliate.ts'

export interface World {
  books: Books
  stub: ProcessorStub
}

type Call = (books: Books) => string[] | Promise<string[]>
/** How a command is called so that it does what it is for, or why it is not called here. `action`: of the audit row that it leaves. */
export type Recipe = (Call & { action?: string }) | string

const leaves = (action: string, call: Call): Recipe => Object.assign(call, { action })

const PASSWORD = 'a long passphrase\n'
const because = (reason: string) => ['--reason', reason, '--yes']
const freshMail = ({ market, creatorId }: Books) => queuedMail(market.platform, creatorId)
const inFolder = ({ market }: Books, name: string) => join(market.bed.testDatabase.folder, name)
const claimOf = (shop: Shop) => [domainOf(shop), '--merchant', shop.merchantId]
const domainOf = ({ merchantId }: Shop) => `s${merchantId}.myshopify.com`
export const way =
  (...args: string[]): Recipe =>
  () =>
    args

/** Every command that there is, in this order, since some need what others have done. */
export const OPERATOR_WORK: Record<string, Recipe> = {
  serve: 'runs the service, whose own tests say what it writes',
  demo: 'works on a database of its own',
  init: 'writes a settings file, and opens no database; its own test looks at the file',
  seed: 'refuses a database in use',
  'processor register-webhook': 'changes a registration at the processor, without a database',
  'db migrate': 'changes the schema, and nothing that an operator decides',
  'db status': way(),
  'db mark-development': 'works on a copy of a production database only; its own test looks at the audit row',
  'db backup': (books) => [inFolder(books, 'backup.db')],
  'db restore': 'makes a database of its own and only names the present one',
  'db grants': 'grants privileges on PostgreSQL, and changes no row',
  doctor: 'reads only, and finds fault with the settings of a test',
  status: way(),
  completion: way('bash'),
  'jobs list': way(),
  'jobs export': leaves('export.file', (books) => ['sales', inFolder(books, 'export.csv')]),
  'mail list': way(),
  'mail preferences': leaves('mail.preferences', (books) => [books.creatorId, '--off', 'payout.paid']),
  'mail show': async (books) => [await freshMail(books)],
  'mail retry': leaves('mail.retry', async (books) => [await freshMail(books)]),
  'users list': way(),
  'users show': (books) => [books.creatorId],
  'users create-admin': leaves('user.create_admin', () => ['second@example.pk', '--password-stdin']),
  'users set-password': leaves('user.set_password', () => ['second@example.pk', '--password-stdin', '--yes']),
  'users suspend': leaves('user.suspend', (books) => [
    books.otherShop.merchantId,
    ...because('forged orders'),
  ]),
  'users reinstate': leaves('user.reinstate', (books) => [books.otherShop.merchantId, '--yes']),
  'users enroll-second-factor':
    'asks for a code of the secret that it prints; its own test looks at the audit row',
  'users reset-second-factor': leaves('user.reset_second_factor', async (books) => {
    const { platform } = books.market
    const { secret } = await startTotp(platform, books.creatorId)
    await confirmTotp(platform, books.creatorId, codeOf(secret, platform.clock), books.creatorId)
    return [books.creatorId, ...because('lost the phone')]
  }),
  'sessions list': (books) => [books.creatorId],
  'sessions end': leaves('user.end_sessions', async (books) => {
    await authorize(books.market.platform, books.creatorId)
    return [books.creatorId, '--yes']
  }),
  'offers list': way(),
  'offers show': async (books) => [(await books.json('offers', 'list')).items[0].id],
  'offers vet': leaves('offer.vet', async (books) => {
    const { id } = await addLiveOffer(books.market.platform, books.otherShop.actor)
    return [id, '--approve', ...because('as agreed')]
  }),
  'applications list': way(),
  'links list': way(),
  'links show': (books) => [books.slug],
  'links set-coupon': leaves('link.coupon', (books) => [books.slug, 'SANA10']),
  'links end': leaves('link.end', (books) => [books.slug, ...because('fake posts')]),
  'flagged list': way(),
  'flagged resolve': leaves('flag.resolve', async (books) => [
    await freshFlag(books),
    '--note',
    'looked at it',
  ]),
  'audit list': way(),
  'flagged walk': 'asks a person about each flag; its own test looks at the audit rows',
  'sales list': way(),
  'sales explain': way('6100000001009'),
  'pending-orders list': way(),
  'pending-orders rates': way(),
  'webhooks fixtures': way(),
  'webhooks replay': 'sends a signed event to a running service; its own test looks at the audit row',
  'webhooks listen': 'prints events as they come, without end',
  'webhooks events': way(),
  'webhooks show': async (books) => [await eventSetAside(books)],
  'webhooks retry': leaves('event.retry', async (books) => [
    await eventSetAside(books),
    ...because('read again'),
  ]),
  'webhooks reprocess': way('--dry-run'),
  'endpoints list': way(),
  'endpoints show': async (books) => [await freshEndpoint(books)],
  'endpoints replay': leaves('webhook_endpoint.replay', async (books) => [
    await freshEndpoint(books),
    '--yes',
  ]),
  'endpoints disable': leaves('webhook_endpoint.disable', async (books) => [
    await freshEndpoint(books),
    ...because('reported as abuse'),
  ]),
  'stores list': way(),
  'stores check': 'reads only, and fails where something must be done',
  'stores compare': (books) => {
    const file = inFolder(books, 'orders_export.csv')
    writeFileSync(file, 'Name,Financial Status,Currency,Subtotal,Created at,Id\n')
    return [domainOf(books.shop), file]
  },
  'stores release': leaves('store.release', (books) => [domainOf(books.otherShop), '--yes']),
  'stores allow': leaves('store.allow', (books) => claimOf(books.otherShop)),
  'billing cycles': way(),
  'billing credit': leaves('billing.credit', (books) => [
    books.shop.merchantId,
    '10',
    '--reference=CR-1',
    ...because('returned'),
  ]),
  'billing close': leaves('billing.close', async (books) => {
    const { items } = await books.json('billing', 'cycles', '--state', 'open')
    return ['--as-of', items[0].period_end, '--yes']
  }),
  'billing reissue': leaves('billing.reissue', async (books) => {
    await drainUntilIdle(books, 'refuse')
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    return [cycle.id, ...because('address corrected')]
  }),
  'payouts list': way(),
  'payouts run': leaves('payout.run', async (books) => {
    await drainUntilIdle(books)
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    await books.market.confirmPayment(cycle.id)
    await drainUntilIdle(books)
    return ['--yes']
  }),
  'payouts retry': leaves('payout.retry', async (books) => {
    await drainUntilIdle(books, 'refuse')
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    return [payout.id, ...because('IBAN corrected')]
  }),
  'payouts show': async (books) => [(await books.json('payouts', 'list')).items[0].id],
  'billing reconcile': 'moves nothing and raises flags, as the schedule does; flags are a record themselves',
  'manual due': 'needs PROCESSOR=manual; its own tests call it',
  'manual received': 'needs PROCESSOR=manual and a running service; its own tests look at the audit row',
  'manual payout-file': 'needs PROCESSOR=manual; its own tests look at the audit row',
  'manual paid': 'needs PROCESSOR=manual and a running service; its own tests look at the audit row',
  'manual failed': 'needs PROCESSOR=manual and a running service; its own tests look at the audit row',
  'manual reconcile': 'needs PROCESSOR=manual; its own tests look at the audit row',
  'ledger verify': way(),
  'ledger balances': way(),
  'ledger statement': way('platform'),
  'ledger seal': way(),
  'keys rotate': leaves('keys.rotate', () => []),
}

/** Applies what is due by the clock on the wall, which commands go by. */
async function drainUntilIdle({ market }: Books, ...answers: 'refuse'[]): Promise<void> {
  market.clock.set(new Date().toISOString())
  market.processor.answers = answers
  await market.drainUntilIdle()
}

async function freshFlag(books: Books): Promise<string> {
  await books.flagCreator()
  return (await rowOf(books.market.platform, 'flags', { kind: 'self_purchase' })).id
}

/** An endpoint at a closed port of this machine, of the creator whose application was approved. */
export async function freshEndpoint({ market, creatorId }: Books): Promise<string> {
  const actor = { userId: creatorId, role: 'creator', sessionId: creatorId } as const
  const fields = { url: 'http://127.0.0.1:8009/hooks', events: ['application.decided'], description: '' }
  return (await createEndpoint(market.platform, actor, fields)).id
}

async function eventSetAside(books: Books): Promise<string> {
  return (await books.json('webhooks', 'events', '--state', 'set_aside')).items[0].id
}

/** What stands on stdin, or is typed. */
export const inputOf = (args: readonly string[]) => (args.includes('--password-stdin') ? PASSWORD : undefined)

/** Runs a command over the world's books. */
export function runOperatorWork({ books, stub }: World, name: string, args: string[]): Promise<Ended> {
  return books.affiliate([...name.split(' '), ...args], stub.settings, inputOf(args))
}
