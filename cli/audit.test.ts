// time limit: 240 s
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { raiseFlag } from '../server/moderation/flags.service.ts'
import { changedTables, tableDigests } from '../server/proof/authorization/digest.ts'
import { addLiveOffer } from '../server/proof/testbed/listings.ts'
import { buildProgram } from './program.ts'
import { type Books, openBooks } from './testing/books.ts'
import { leavesOf } from './testing/command-tree.ts'
import { openProcessorStub, type ProcessorStub } from './testing/processor-stub.ts'
import { APP_KEY, runAffiliate } from './testing/run-affiliate.ts'

interface World {
  books: Books
  stub: ProcessorStub
}

interface Way {
  args: string[]
  input?: string
}

/** How a command is called so that it does what it is for, or why it is not called here. */
type Recipe = ((world: World) => Way | Promise<Way>) | string

const PASSWORD = 'a long passphrase\n'
const way =
  (...args: string[]): Recipe =>
  () => ({ args })

/** Every command that there is, in this order, since some need what others have done. */
const COMMANDS: Record<string, Recipe> = {
  serve: 'runs the service, whose own tests say what it writes',
  demo: 'works on a database of its own',
  'db migrate': 'changes the schema, and nothing that an operator decides',
  'db status': way(),
  'db backup': ({ books }) => ({ args: [join(books.market.bed.testDatabase.folder, 'backup.db')] }),
  doctor: 'reads only, and finds fault with the settings of a test',
  status: way(),
  completion: way('bash'),
  'jobs list': way(),
  'users list': way(),
  'users create-admin': () => ({ args: ['second@example.pk', '--password-stdin'], input: PASSWORD }),
  'users set-password': () => ({ args: ['second@example.pk', '--password-stdin'], input: PASSWORD }),
  'users suspend': ({ books }) => ({
    args: [books.otherShop.merchantId, '--reason', 'forged orders', '--yes'],
  }),
  'users reinstate': ({ books }) => ({ args: [books.otherShop.merchantId] }),
  'offers list': way(),
  'offers vet': async ({ books }) => {
    const { id } = await addLiveOffer(books.market.platform, books.otherShop.actor)
    return { args: [id, '--approve', '--reason', 'as agreed', '--yes'] }
  },
  'flagged list': way(),
  'flagged resolve': async (world) => ({ args: [await freshFlag(world), '--note', 'looked at it'] }),
  'flagged walk': 'asks a person about each flag; its own test looks at the audit rows',
  'sales list': way(),
  'sales explain': way('6100000001009'),
  'webhooks fixtures': way(),
  'webhooks replay': 'sends a signed event to a running service, which keeps that event',
  'webhooks listen': 'prints events as they come, without end',
  'webhooks events': way(),
  'webhooks show': async (world) => ({ args: [await eventSetAside(world)] }),
  'webhooks retry': async (world) => ({ args: [await eventSetAside(world), '--reason', 'read again'] }),
  'webhooks reprocess': way('--dry-run'),
  'stores list': way(),
  'stores release': ({ books }) => ({ args: [`s${books.otherShop.merchantId}.myshopify.com`, '--yes'] }),
  'billing cycles': way(),
  'billing credit': ({ books }) => ({
    args: [books.shop.merchantId, '10', '--reference', 'CR-1', '--reason', 'returned', '--yes'],
  }),
  'billing close': async ({ books }) => {
    const { items } = await books.json('billing', 'cycles', '--state', 'open')
    return { args: ['--as-of', items[0].period_end, '--yes'] }
  },
  'billing reissue': async ({ books }) => {
    await workOff(books, 'refuse')
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    return { args: [cycle.id, '--reason', 'address corrected', '--yes'] }
  },
  'payouts list': way(),
  'payouts run': async ({ books }) => {
    await workOff(books)
    const [cycle] = (await books.json('billing', 'cycles', '--state', 'closed')).items
    await books.market.confirmPayment(cycle.id)
    await workOff(books)
    return { args: [] }
  },
  'payouts retry': async ({ books }) => {
    await workOff(books, 'refuse')
    const [payout] = (await books.json('payouts', 'list', '--state', 'pending')).items
    return { args: [payout.id, '--reason', 'IBAN corrected', '--yes'] }
  },
  'billing reconcile': 'moves nothing and raises flags, as the schedule does; flags are a record themselves',
  'ledger verify': way(),
  'ledger balances': way(),
  'ledger statement': way('platform'),
  'ledger seal': way(),
}

/** The audit row of each that changes something. */
const AUDITED: Record<string, string> = {
  'users create-admin': 'user.create_admin',
  'users set-password': 'user.set_password',
  'users suspend': 'user.suspend',
  'users reinstate': 'user.reinstate',
  'offers vet': 'offer.vet',
  'flagged resolve': 'flag.resolve',
  'webhooks retry': 'event.retry',
  'stores release': 'store.release',
  'billing credit': 'billing.credit',
  'billing close': 'billing.close',
  'billing reissue': 'billing.reissue',
  'payouts run': 'payout.run',
  'payouts retry': 'payout.retry',
}

/** What some write is a record of its own, and moves neither money nor people. */
const RECORDS: Record<string, readonly string[]> = { 'ledger seal': ['ledger_seals', 'ledger_seal_heads'] }

/** Applies what is due by the clock on the wall, which commands go by. */
async function workOff({ market }: Books, ...answers: 'refuse'[]): Promise<void> {
  market.clock.set(new Date().toISOString())
  market.processor.answers = answers
  await market.workOff()
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

async function eventSetAside({ books }: World): Promise<string> {
  return (await books.json('webhooks', 'events', '--state', 'set_aside')).items[0].id
}

const it = suite<World>('what operators do')
it.before(async (world) => {
  world.books = await openBooks('sqlite', { here: true })
  world.stub = await openProcessorStub()
})
it.after(async ({ books, stub }) => {
  await stub.close()
  await books.market.close()
})

it('has a row here for every command', () => {
  const names = leavesOf(buildProgram()).map(({ name }) => name)
  assert.equal(Object.keys(COMMANDS).sort(), names.sort())
})

for (const [name, recipe] of Object.entries(COMMANDS)) {
  if (typeof recipe === 'string') continue
  const action = AUDITED[name]
  it(`${name} ${action ? 'leaves an audit row' : 'changes nothing that would need one'}`, async (world) => {
    const { reader } = world.books.market.platform.database
    const rows = () => reader.selectFrom('audit_entries').selectAll().orderBy('id').execute()
    const { args, input } = await recipe(world)
    const before = { rows: await rows(), tables: await tableDigests(reader) }
    await run(world, [...name.split(' '), ...args], input)
    const changed = changedTables(before.tables, await tableDigests(reader))
    const added = (await rows()).slice(before.rows.length)
    if (!action) {
      const unexplained = changed.filter((table) => !RECORDS[name]?.includes(table))
      assert.equal(unexplained, [], 'it leaves an audit row: say in AUDITED which')
      return
    }
    assert.ok(changed.some((table) => table !== 'audit_entries'))
    assert.equal(
      added.map((row) => [row.actor, row.action]),
      [['operator', action]],
    )
    const reason = args.findIndex((arg) => arg === '--reason' || arg === '--note')
    assert.is(added[0]?.reason, reason < 0 ? null : args[reason + 1])
    // A password is nothing to write down.
    if (name !== 'users set-password') assert.ok(added[0]?.after)
  })
}

async function run({ books, stub }: World, args: string[], input: string | undefined): Promise<void> {
  const { url, folder } = books.market.bed.testDatabase
  const environment = { DATABASE_URL: url, APP_KEY, DATA_DIR: folder }
  const { code, stderr } =
    input === undefined
      ? await books.affiliate(args, stub.settings)
      : await runAffiliate(args, { environment, input, folder })
  assert.is(code, 0, stderr)
}

it('says how things were before and after', async ({ books }) => {
  const [close, run] = await Promise.all(
    ['billing.close', 'payout.run'].map((action) =>
      books.market.platform.database.reader
        .selectFrom('audit_entries')
        .selectAll()
        .where('action', '=', action)
        .executeTakeFirstOrThrow(),
    ),
  )
  const parsed = (text: string | null | undefined) => JSON.parse(text ?? 'null')
  assert.is(close?.subject_type, 'billing_cycle')
  assert.is(parsed(close?.before).state, 'open')
  // Commissions of 5,624.88 and fees of 562.49, less the credit of 10.00.
  assert.equal(parsed(close?.after), { state: 'closed', credit_total: 1000, amount_due: 617_737 })
  assert.is(run?.subject_type, 'payout')
  assert.equal(parsed(run?.before), { creator_id: books.creatorId, released: 562_488 })
  assert.equal(parsed(run?.after), { creator_id: books.creatorId, released: 0, amount: 562_488 })
})

it.run()
