import { sql } from 'kysely'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Tx } from '../platform/database/database.ts'
import { testDialects } from '../test/testkit/databases.ts'
import { addUser } from '../test/testkit/people.ts'
import { pluck } from '../test/testkit/pluck.ts'
import { openRival, type Rival } from '../test/testkit/rival.ts'
import { columnsOf } from '../test/testkit/rows.ts'
import { statementCounter } from '../test/testkit/statements.ts'
import { openTestbed, type Testbed } from '../test/testkit/testbed.ts'
import { CHAIN_INVARIANTS } from '../verification/chain.ts'
import type { Breach } from '../verification/invariant.ts'
import { EVERYTHING } from '../verification/scope.ts'
import { saleAccepted } from './entries.rule.ts'
import { writeEntries } from './ledger.service.ts'

interface Context {
  bed: Testbed
  rival: Rival
  merchants: [string, string]
  creatorId: string
}

for (const dialect of testDialects()) {
  const it = suite<Context>(`journal on ${dialect}`)
  const onPostgres = dialect === 'postgresql' ? it : () => undefined
  it.before.each(async (context) => {
    context.bed = await openTestbed(dialect)
    context.rival = await openRival(context.bed)
    const { platform } = context.bed
    const [one, two] = [await addUser(platform, 'merchant'), await addUser(platform, 'merchant')]
    context.merchants = [one.userId, two.userId].sort() as [string, string]
    context.creatorId = (await addUser(platform, 'creator')).userId
  })
  it.after.each(async ({ bed, rival }) => {
    await rival?.close()
    await bed?.close()
  })

  const sale = ({ bed, creatorId }: Context, merchantId: string) =>
    saleAccepted({
      saleId: bed.platform.ids.next(),
      merchantId,
      creatorId,
      commission: 1000,
      platformFee: 100,
    })
  const write = (context: Context, { platform }: Pick<Rival, 'platform'>, tx: Tx, merchants: string[]) =>
    writeEntries(
      platform,
      tx,
      merchants.map((id) => sale(context, id)),
      platform.clock.now(),
    )
  const faults = async ({ bed }: Context): Promise<Breach[]> => {
    const { database, keys } = bed.platform
    const checks = CHAIN_INVARIANTS.map((check) => check.breaches(database.reader, keys, EVERYTHING))
    return (await Promise.all(checks)).flat()
  }
  const headsOf = ({ bed }: Context) =>
    columnsOf(bed.platform, 'ledger_heads', ['ledger_id', 'sequence'], {}, 'ledger_id')

  it('gives each party a chain of its own', async (context) => {
    const { bed, merchants } = context
    const [one, two] = merchants
    await bed.platform.database.transaction((tx) => write(context, bed, tx, [two, one, two]))
    await bed.platform.database.transaction((tx) => write(context, bed, tx, [one]))
    await bed.platform.database.transaction((tx) => write(context, bed, tx, []))
    assert.equal(await headsOf(context), [
      { ledger_id: one, sequence: 2 },
      { ledger_id: two, sequence: 2 },
    ])
    assert.equal(await faults(context), [])
  })

  it('takes as many statements for a thousand entries as for one', async (context) => {
    const { bed, merchants } = context
    const count = async (entries: string[]) => {
      const counter = statementCounter()
      await bed.platform.database.transaction((tx) => write(context, bed, tx.withPlugin(counter), entries))
      return counter.count
    }
    await count([...merchants])
    assert.is(await count([merchants[0]]), 4)
    const many = await count(Array.from({ length: 1000 }, (_, index) => merchants[index % 2] ?? ''))
    assert.is(many, 4)
    assert.equal(await faults(context), [])
  })

  it('leaves no trace of a transaction that fails', async (context) => {
    const { bed, merchants } = context
    await bed.platform.database.transaction((tx) => write(context, bed, tx, merchants))
    const failing = bed.platform.database.transaction(async (tx) => {
      await write(context, bed, tx, merchants)
      throw new Error('after all not')
    })
    assert.match(String(await failing.catch((error) => error)), /after all not/)
    assert.equal(pluck(await headsOf(context), 'sequence'), [1, 1])
    assert.equal(await faults(context), [])
  })

  onPostgres('lets writers for different merchants pass each other', async (context) => {
    const { bed, rival, merchants } = context
    await bed.platform.database.transaction(async (tx) => {
      await write(context, bed, tx, [merchants[0]])
      // Ends while the first one is still open, or never.
      await rival.platform.database.transaction((other) => write(context, rival, other, [merchants[1]]))
    })
    assert.equal(pluck(await headsOf(context), 'sequence'), [1, 1])
    assert.equal(await faults(context), [])
  })

  onPostgres('has the second writer of a merchant wait for the first, also at the start', async (context) => {
    const { bed, rival, merchants } = context
    for (const round of [1, 2]) {
      let second: Promise<void> = Promise.resolve()
      await bed.platform.database.transaction(async (tx) => {
        await write(context, bed, tx, [merchants[0]])
        second = rival.platform.database.transaction((other) => write(context, rival, other, [merchants[0]]))
        for (;;) {
          // Not in the transaction, which would see the same activity for as long as it lasts.
          const waiting = await sql`select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(
            bed.platform.database.reader,
          )
          if (waiting.rows.length > 0) break
        }
      })
      await second
      assert.is((await headsOf(context))[0]?.sequence, 2 * round)
    }
    assert.equal(await faults(context), [])
  })

  it('stays whole under two services that write for the same merchants in every order', async (context) => {
    const { bed, rival, merchants } = context
    let tries = 0
    const writeAll = async (by: Pick<Rival, 'platform'>) => {
      for (let round = 0; round < 60; round += 1) {
        const order = [[0], [1], [0, 1], [1, 0], [1, 1, 0]][round % 5] ?? []
        const entries = order.map((at) => merchants[at] ?? '')
        await by.platform.database.transaction((tx) => {
          tries += 1
          return write(context, by, tx, entries)
        })
      }
    }
    await Promise.all([writeAll(bed), writeAll(rival)])
    assert.equal(pluck(await headsOf(context), 'sequence'), [96, 120])
    assert.equal(await faults(context), [])
    // After a deadlock, a transaction would be repeated.
    if (dialect === 'postgresql') assert.is(tries, 120)
  })

  it.run()
}
