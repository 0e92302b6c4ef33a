// long
import { stripVTControlCharacters } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { testDialects } from '../../server/test/testkit/databases.ts'
import { addUser, queuedMail } from '../../server/test/testkit/people.ts'
import { assertNone } from '../../server/test/testkit/pluck.ts'
import { Failure } from '../failures.ts'
import { buildProgram } from '../program.ts'
import { ID_TABLES } from '../short-ids.ts'
import { suiteOverBooks } from './books.ts'
import { leavesOf } from './command-tree.ts'

const LENGTH = 8

test('every argument and option for an id is looked up by its short form', () => {
  const refused = (parse: ((text: string, former: unknown) => unknown) | undefined) => {
    try {
      parse?.('x', undefined)
      return false
    } catch (error) {
      return error instanceof Failure && /is not the id of/.test(error.message)
    }
  }
  const names = leavesOf(buildProgram()).flatMap(({ command }) => [
    ...command.registeredArguments.filter((one) => refused(one.parseArg)).map((one) => one.name()),
    ...command.options.filter((one) => refused(one.parseArg)).map(({ flags }) => /<(\w+)>/.exec(flags)?.[1]),
  ])
  assert.ok(names.length > 10)
  assertNone(names, (name) => !(`${name}` in ID_TABLES))
})

test.run()

for (const dialect of testDialects()) {
  const { it, books } = suiteOverBooks(`short ids on ${dialect}`, dialect)

  it('are what a terminal shows, and what commands take', async () => {
    const { market, shop, creatorId } = books
    const { platform } = market
    const [offer] = (await books.json('offers', 'list')).items
    const screenOf = async (...args: string[]) =>
      stripVTControlCharacters((await books.type(args, { columns: 80 })).screen)
    const short = offer.id.slice(-LENGTH)
    assert.match(await screenOf('offers', 'list'), new RegExp(`\n${short}  `))
    assert.match(await screenOf('offers', 'list', '--full-ids'), new RegExp(`\n${offer.id}  `))
    await books.says(['offers', 'list'], new RegExp(`\n${offer.id}\t`))
    for (const end of [short, offer.id.slice(-6).toUpperCase(), offer.id.slice(-30), offer.id]) {
      assert.is((await books.json('offers', 'show', end)).id, offer.id, end)
    }
    const creator = creatorId.slice(-LENGTH)
    assert.is((await books.json('users', 'show', creator)).id, creatorId)
    assert.is((await books.json('links', 'list', '--creator', creator, '--offer', short)).items.length, 1)
    const [event] = (await books.json('webhooks', 'events')).items
    assert.is((await books.json('webhooks', 'show', event.id.slice(-LENGTH))).id, event.id)
    const mail = await queuedMail(platform, creatorId)
    assert.is((await books.json('mail', 'show', mail.slice(-LENGTH))).id, mail)
    const byStore = ['sales', 'explain', '#1001', '--store', shop.storeId.slice(-LENGTH)]
    const { sale_id: sale } = await books.json(...byStore)
    assert.is((await books.json('sales', 'explain', sale.slice(-LENGTH))).sale_id, sale)
    assert.is((await books.json('audit', 'list', '--subject', shop.storeId.slice(-LENGTH))).items.length, 1)
  })

  it('of several ids are refused with the candidates, of none as unknown', async () => {
    const { platform } = books.market
    const end = 'facade123456'
    const ids = ['019c3f5e-8a40-7cc2-9d6e', '019c3f5e-8a41-7cc2-9d6e'].map((start) => `${start}-${end}`)
    const [first = '', second = ''] = ids
    for (const id of ids) await addUser({ ...platform, ids: { next: () => id } }, 'creator')
    const { stderr } = await books.refuses(
      ['users', 'show', end.slice(-6)],
      /^affiliate: Several ids end with /,
    )
    assert.is(stderr, `affiliate: Several ids end with 123456. Give more of one:\n  ${second}\n  ${first}\n`)
    const json = await books.affiliate(['users', 'show', end, '--json'])
    assert.equal(JSON.parse(json.stderr).candidates, [second, first])
    assert.is((await books.json('users', 'show', first.slice(-30))).id, first)
    await books.refuses(['offers', 'show', 'abcdef'], /No offer has an id that ends with abcdef\./)
    await books.refuses(['offers', 'show', 'abcde'], /is not the id of an offer/, 2)
    await books.refuses(['webhooks', 'show', 'abcdef'], /There is no event abcdef/)
  })

  it.run()
}
