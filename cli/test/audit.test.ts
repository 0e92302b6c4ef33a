// long
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { changedTables, tableDigests } from '../../server/test/authorization/digest.ts'
import { assertMapped } from '../../server/test/testkit/pluck.ts'
import { rowOf } from '../../server/test/testkit/rows.ts'
import { buildProgram } from '../program.ts'
import { openBooks } from './books.ts'
import { leavesOf } from './command-tree.ts'
import { AUDITED, OPERATOR_WORK, runOperatorWork, type World } from './operator-work.ts'
import { openProcessorStub } from './processor-stub.ts'

/** What some write is a record of its own, and moves neither money nor people. */
const RECORDS: Record<string, readonly string[]> = {
  'ledger seal': ['ledger_seals', 'ledger_seal_heads', 'watermarks'],
}

const it = suite<World>('what operators do')
it.before(async (world) => {
  world.books = await openBooks('sqlite')
  world.stub = await openProcessorStub()
})
it.after(async ({ books, stub }) => {
  await stub.close()
  await books.market.close()
})

it('has a row here for every command', () => {
  const names = leavesOf(buildProgram()).map(({ name }) => name)
  assert.equal(Object.keys(OPERATOR_WORK).sort(), names.sort())
})

for (const [name, recipe] of Object.entries(OPERATOR_WORK)) {
  if (typeof recipe === 'string') continue
  const action = AUDITED[name]
  it(`${name} ${action ? 'leaves an audit row' : 'changes nothing that would need one'}`, async (world) => {
    const { reader } = world.books.market.platform.database
    const rows = () => reader.selectFrom('audit_entries').selectAll().orderBy('id').execute()
    const way = await recipe(world)
    const { args } = way
    const before = { rows: await rows(), tables: await tableDigests(reader) }
    const { code, stdout, stderr } = await runOperatorWork(world, name, { ...way, args: [...args, '--json'] })
    assert.equal([code, stderr], [0, ''])
    JSON.parse(stdout)
    const changed = changedTables(before.tables, await tableDigests(reader))
    // A store that is released takes its merchant's offers with it, and a link that ends its coupon code, each on the record.
    const taken = ['offer.pause', 'link.coupon'].filter((one) => one !== action)
    const added = (await rows()).slice(before.rows.length).filter((row) => !taken.includes(row.action))
    if (!action) {
      const unexplained = changed.filter((table) => !RECORDS[name]?.includes(table))
      assert.equal(unexplained, [], 'it leaves an audit row: say in AUDITED which')
      return
    }
    assert.ok(changed.some((table) => table !== 'audit_entries'))
    assertMapped(added, (row) => [row.actor, row.action], [['operator', action]])
    const reason = args.findIndex((arg) => arg === '--reason' || arg === '--note')
    assert.is(added[0]?.reason, reason < 0 ? null : args[reason + 1])
    // A password is nothing to write down.
    if (name !== 'users set-password') assert.ok(added[0]?.after)
  })
}

it('says how things were before and after', async ({ books }) => {
  const [close, run] = await Promise.all(
    ['billing.close', 'payout.run'].map((action) =>
      rowOf(books.market.platform, 'audit_entries', { action }),
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
