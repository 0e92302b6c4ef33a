import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { raiseFlag } from '../../server/flags/flags.service.ts'
import { createEndpoint } from '../../server/notifications/channels/webhooks/endpoints.service.ts'
import { authorize } from '../../server/test/authorization/scene.ts'
import { codeOf } from '../../server/test/testkit/authenticator.ts'
import { addLiveOffer } from '../../server/test/testkit/listings.ts'
import { queuedMail } from '../../server/test/testkit/people.ts'
import { confirmTotp, startTotp } from '../../server/users/second-factor.service.ts'
import type { Books } from './books.ts'
import type { ProcessorStub } from './processor-stub.ts'
import type { Ended } from './run-affiliate.ts'

export interface World {
  books: Books
  stub: ProcessorStub
}

export interface Way {
  args: string[]
  input?: string
}

/** How a command is called so that it does what it is for, or why it is not called here. */
export type Recipe = ((world: World) => Way | Promise<Way>) | string

const PASSWORD = 'a long passphrase\n'
export const way =
  (...args: string[]): Recipe =>
  () => ({ args })

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
  'db backup': ({ books }) => ({ args: [join(books.market.bed.testDatabase.folder, 'backup.db')] }),
  'db restore': 'makes a database of its own and only names the present one',
  'db grants': 'grants privileges on PostgreSQL, and changes no row',
  doctor: 'reads only, and finds fault with the settings of a test',
  status: way(),
  completion: way('bash'),
  'jobs list': way(),
  'jobs export': ({ books }) => ({
    args: ['sales', join(books.market.bed.testDatabase.folder, 'export.csv')],
  }),
  'mail list': way(),
  'mail preferences': ({ books }) => ({ args: [books.creatorId, '--off', 'payout.paid'] }),
  'mail show': async ({ books }) => ({ args: [await queuedMail(books.market.platform, books.creatorId)] }),
  'mail retry': async ({ books }) => ({ args: [await queuedMail(books.market.platform, books.creatorId)] }),
  'users list': way(),
  'users show': ({ books }) => ({ args: [books.creatorId] }),
  'users create-admin': () => ({ args: ['second@example.pk', '--password-stdin'], input: PASSWORD }),
  'users set-password': () => ({ args: ['second@example.pk', '--password-stdin', '--yes'], input: PASSWORD }),
  'users suspend': ({ books }) => ({
    args: [books.otherShop.merchantId, '--reason', 'forged orders', '--yes'],
  }),
  'users reinstate': ({ books }) => ({ args: [books.otherShop.merchantId, '--yes'] }),
  'users enroll-second-factor':
    'asks for a code of the secret that it prints; its own test looks at the audit row',
  'users reset-second-factor': async ({ books: { market, creatorId } }) => {
    const { platform } = market
    const { secret } = await startTotp(platform, creatorId)
    await confirmTotp(platform, creatorId, codeOf(secret, platform.clock), creatorId)
    return { args: [creatorId, '--reason', 'lost the phone', '--yes'] }
  },
  'sessions list': ({ books }) => ({ args: [books.creatorId] }),
  'sessions end': async ({ books }) => {
    await authorize(books.market.platform, books.creatorId)
    return { args: [books.creatorId, '--yes'] }
  },
  'offers list': way(),
  'offers show': async ({ books }) => ({ args: [(await books.json('offers', 'list')).items[0].id] }),
  'offers vet': async ({ books }) => {
    const { id } = await addLiveOffer(books.market.platform, books.otherShop.actor)
    return { args: [id, '--approve', '--reason', 'as agreed', '--yes'] }
  },
  'applications list': way(),
  'links list': way(),
  'links show': ({ books }) => ({ args: [books.slug] }),
  'links set-coupon': ({ books }) => ({ args: [books.slug, 'SANA10'] }),
  'links end': ({ books }) => ({ args: [books.slug, '--reason', 'fake posts', '--yes'] }),
  'flagged list': way(),
  'flagged resolve': async (world) => ({ args: [await freshFlag(world), '--note', 'looked at it'] }),
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
  'webhooks show': async (world) => ({ args: [await eventSetAside(world)] }),
  'webhooks retry': async (world) => ({
    args: [await eventSetAside(world), '--reason', 'read again', '--yes'],
  }),
  'webhooks reprocess': way('--dry-run'),
  'endpoints list': way(),
  'endpoints show': async (world) => ({ args: [await freshEndpoint(world)] }),
  'endpoints replay': async (world) => ({ args: [await freshEndpoint(world), '--yes'] }),
  'endpoints disable': async (world) => ({
    args: [await freshEndpoint(world), '--reason', 'reported as abuse', '--yes'],
  }),
  'stores list': way(),
  'stores check': 'reads only, and fails where something must be done',
  'stores compare': ({ books }) => {
    const file = join(books.market.bed.testDatabase.folder, 'orders_export.csv')
    writeFileSync(file, 'Name,Financial Status,Currency,Subtotal,Created at,Id\n')
    return { args: [`s${books.shop.merchantId}.myshopify.com`, file] }
  },
  'stores release': ({ books }) => ({ args: [`s${books.otherShop.merchantId}.myshopify.com`, '--yes'] }),
  'stores allow': ({ books }) => ({
    args: [`s${books.otherShop.merchantId}.myshopify.com`, '--merchant', books.otherShop.merchantId],
  }),
  'billing cycles': way(),
  'billing credit': ({ books }) => ({
    args: [books.shop.merchantId, '10', '--reference', 'CR-1', '--reason', 'returned', '--yes'],
  }),
  'billing close': async ({ books }) => {
    const { items } = await books.json('billing', 'cycles', '--state', 'open')
    return { args: ['--as-of', items[0].period_end, '--yes'] }
  },
  'billing reissue': async ({ books }) => {
    await drainUntilIdle(books, 'refuse')
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    return { args: [cycle.id, '--reason', 'address corrected', '--yes'] }
  },
  'payouts list': way(),
  'payouts run': async ({ books }) => {
    await drainUntilIdle(books)
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    await books.market.confirmPayment(cycle.id)
    await drainUntilIdle(books)
    return { args: ['--yes'] }
  },
  'payouts retry': async ({ books }) => {
    await drainUntilIdle(books, 'refuse')
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    return { args: [payout.id, '--reason', 'IBAN corrected', '--yes'] }
  },
  'payouts show': async ({ books }) => ({ args: [(await books.json('payouts', 'list')).items[0].id] }),
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
  'keys rotate': way(),
}

/** The audit row of each that changes something. */
export const AUDITED: Record<string, string> = {
  'users create-admin': 'user.create_admin',
  'users set-password': 'user.set_password',
  'users suspend': 'user.suspend',
  'users reinstate': 'user.reinstate',
  'users reset-second-factor': 'user.reset_second_factor',
  'sessions end': 'user.end_sessions',
  'offers vet': 'offer.vet',
  'links set-coupon': 'link.coupon',
  'links end': 'link.end',
  'jobs export': 'export.file',
  'flagged resolve': 'flag.resolve',
  'webhooks retry': 'event.retry',
  'endpoints replay': 'webhook_endpoint.replay',
  'endpoints disable': 'webhook_endpoint.disable',
  'stores release': 'store.release',
  'stores allow': 'store.allow',
  'billing credit': 'billing.credit',
  'billing close': 'billing.close',
  'billing reissue': 'billing.reissue',
  'payouts run': 'payout.run',
  'payouts retry': 'payout.retry',
  'keys rotate': 'keys.rotate',
  'mail retry': 'mail.retry',
  'mail preferences': 'mail.preferences',
}

/** Applies what is due by the clock on the wall, which commands go by. */
async function drainUntilIdle({ market }: Books, ...answers: 'refuse'[]): Promise<void> {
  market.clock.set(new Date().toISOString())
  market.processor.answers = answers
  await market.drainUntilIdle()
}

async function freshFlag({ books: { market, creatorId } }: World): Promise<string> {
  const flag = {
    kind: 'self_purchase',
    subjectType: 'user',
    subjectId: creatorId,
    summary: 'To be looked at.',
    evidence: {},
  } as const
  await market.platform.database.transaction((tx) => raiseFlag(market.platform, tx, flag))
  const flags = market.platform.database.reader.selectFrom('flags').select('id')
  return (await flags.where('kind', '=', flag.kind).executeTakeFirstOrThrow()).id
}

/** An endpoint at a closed port of this machine, of the creator whose application was approved. */
export async function freshEndpoint({ books: { market, creatorId } }: Pick<World, 'books'>): Promise<string> {
  const actor = { userId: creatorId, role: 'creator', sessionId: creatorId } as const
  const fields = { url: 'http://127.0.0.1:8009/hooks', events: ['application.decided'], description: '' }
  return (await createEndpoint(market.platform, actor, fields)).id
}

async function eventSetAside({ books }: World): Promise<string> {
  return (await books.json('webhooks', 'events', '--state', 'set_aside')).items[0].id
}

/** Runs a command over the world's books. */
export function runOperatorWork({ books, stub }: World, name: string, { args, input }: Way): Promise<Ended> {
  return books.affiliate([...name.split(' '), ...args], stub.settings, input)
}
