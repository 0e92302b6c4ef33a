// time limit: 120 s
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addLink, addLiveOffer } from '../server/proof/testbed/listings.ts'
import { type Books, openBooks } from './testing/books.ts'
import { APP_KEY, ENTRY, environmentOf } from './testing/run-affiliate.ts'

const it = suite('Ctrl-C')
let books: Books
it.before(async () => {
  books = await openBooks('sqlite')
})
it.after(() => books.market.close())

/** Runs a command, interrupts it as soon as `when` says so, and answers how it ended. */
async function interrupted(
  args: string[],
  when: () => Promise<boolean>,
): Promise<[number | null, string | null]> {
  const { url, folder } = books.market.bed.testDatabase
  const env = environmentOf({ DATABASE_URL: url, DATA_DIR: folder, APP_KEY })
  const child = spawn(process.execPath, [ENTRY, ...args], { cwd: folder, env, stdio: 'ignore' })
  const ended = once(child, 'close')
  while (child.exitCode === null && child.signalCode === null && !(await when())) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  child.kill('SIGINT')
  return (await ended) as [number | null, string | null]
}

it('in the middle of a close leaves whole cycles, and the next close goes on', async () => {
  const { market } = books
  const creator = await market.addCreator('Bilal')
  for (let at = 0; at < 40; at += 1) {
    const shop = await market.addShop(`Shop ${at}`)
    const offer = await addLiveOffer(market.platform, shop.actor)
    const link = await addLink(market.platform, shop.actor, creator, offer.id)
    await market.order(shop, link, 100_000)
  }
  await market.workOff()
  const { reader } = market.platform.database
  const closed = async () => {
    const rows = await reader
      .selectFrom('billing_cycles')
      .select('id')
      .where('state', '=', 'closed')
      .execute()
    return rows.length
  }
  const args = ['billing', 'close', '--as-of', '2099-01-01']
  await interrupted(args, async () => (await closed()) >= 3)
  const before = await closed()
  assert.ok(before >= 3 && before < 41, String(before))
  await market.verify()
  const { items } = await books.json(...args)
  assert.is(items.length, 41 - before)
  assert.is(await closed(), 41)
  await market.verify()
})

it('in the middle of a backup leaves no half of one behind', async () => {
  const { folder } = books.market.bed.testDatabase
  const drafts = () => readdirSync(folder).filter((name) => name.startsWith('backup.db'))
  const [code, signal] = await interrupted(
    ['db', 'backup', `${folder}/backup.db`],
    async () => drafts().length > 0,
  )
  if (code !== 0) assert.equal([code ?? signal, drafts()], [130, []])
  else assert.equal(drafts(), ['backup.db'])
})

it.run()
