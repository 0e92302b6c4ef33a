// proof only
import { chdir, cwd } from 'node:process'
import type { Option } from 'commander'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { buildProgram } from '../../../cli/program.ts'
import { type Leaf, leavesOf } from '../../../cli/test/command-tree.ts'
import { type EndedHere, runHere } from '../../../cli/test/run-here.ts'
import { type Marketplace, openMarketplace } from '../testkit/marketplace.ts'
import { orderBody } from '../testkit/orders.ts'
import { proofCount } from '../testkit/proof-size.ts'
import { either, fc } from '../testkit/property.ts'
import { badString } from './hostile.ts'

const COMMANDS = proofCount('FUZZ_COMMANDS', 150)
/** Commands that run until they are ended, make network calls, write files, or read a password. */
const LEFT_OUT = [
  ...['users create-admin', 'users set-password', 'users enroll-second-factor', 'serve', 'seed', 'demo'],
  ...['db migrate', 'db backup', 'webhooks replay', 'webhooks listen', 'status', 'doctor'],
]
/** Makes a command run until it is ended. */
const ENDLESS = '--follow'

/** Words that commands know what to do with, and words that they do not. */
function wordOf(known: readonly string[]): fc.Arbitrary<string> {
  return either(
    [4, fc.constantFrom(...known)],
    [2, badString.map((text) => text.replaceAll('\0', '').slice(0, 3000))],
    [1, fc.constantFrom(...'-- - --- -x --json=1 --yes --no-json --help -1 0 1e9'.split(' '))],
  )
}

function optionWords(option: Option, word: fc.Arbitrary<string>): fc.Arbitrary<string[]> {
  const flag = option.long ?? option.short ?? '--'
  const takesValue = option.required || option.optional
  if (flag === '--database-url')
    return fc.constantFrom<string[]>([], [flag, 'sqlite:none.db'], [flag, 'postgres://'], [flag, 'x'])
  if (!takesValue) return fc.constantFrom<string[]>([flag], [flag, flag])
  return fc.oneof(
    word.map((value) => [flag, value]),
    word.map((value) => [`${flag}=${value}`]),
    fc.constant<string[]>([flag]),
  )
}

function lineOf({ name, command }: Leaf, known: readonly string[]): fc.Arbitrary<string[]> {
  const word = wordOf(known)
  const wanted = command.registeredArguments.length
  const options = [...command.options, ...buildProgram().options]
    .filter(({ long }) => long !== ENDLESS)
    .map((option) => optionWords(option, word))
  return fc
    .record({
      words: either(
        [4, fc.array(word, { minLength: wanted, maxLength: wanted })],
        [1, fc.array(word, { maxLength: 4 })],
      ),
      flags: fc.array(fc.oneof(...options), { maxLength: 4 }),
      json: fc.boolean(),
    })
    .map(({ words, flags, json }) => [
      ...name.split(' '),
      ...words,
      ...flags.flat(),
      ...(json ? ['--json'] : []),
    ])
}

function flawOf(args: readonly string[], { code, stdout, stderr }: EndedHere): string | null {
  if (![0, 1, 2].includes(code)) return `exit code ${code}`
  if (/\n\s+at .*:\d+:\d+\)?$/m.test(stderr) || /"code":"internal"/.test(stderr)) return 'shows a bug'
  if (code !== 0 && stderr.trim() === '' && stdout.trim() === '') return 'fails without a word'
  const asJson =
    args.includes('--json') && !args.includes('--') && !args.includes('--help') && !args.includes('--version')
  if (!asJson || stdout === '' || /^Usage: /.test(stdout)) return null
  try {
    JSON.parse(stdout)
    return null
  } catch {
    return 'writes something else than one JSON document'
  }
}

const it = suite('random command lines')
const before = cwd()
let environment: Record<string, string>
let market: Marketplace
let known: string[]

it.before(async () => {
  market = await openMarketplace('sqlite')
  market.clock.set(new Date().toISOString())
  const shop = await market.addShop()
  const creator = await market.addCreator()
  const link = await market.addLink(shop, creator)
  await market.order(shop, link, 500_000, { name: '#1001', id: '6100000001009' })
  await market.deliver(shop, orderBody({ price: 100_000, createdAt: market.clock.now(), name: '#1001' }))
  await market.deliver(shop, '{"id": "no order at all"}')
  await market.drainUntilIdle()
  const { reader } = market.platform.database
  const events = await reader.selectFrom('inbound_events').select('id').execute()
  const cycles = await reader.selectFrom('billing_cycles').select('id').execute()
  const people = [shop.merchantId, creator.userId]
  known = [
    ...people,
    ...people.map((id) => `${id}@example.com`),
    ...[...events, ...cycles].map(({ id }) => id),
    link.offer_id,
    shop.storeId,
    `s${shop.merchantId}.myshopify.com`,
    ...['#1001', '6100000001009', '100.50', '2026-11-20', '2030-01-01T00:00:00Z', '25'],
    ...['open', 'a reason', 'bash'],
  ]
  const { url, folder } = market.bed.testDatabase
  chdir(folder)
  environment = { DATABASE_URL: url, DATA_DIR: folder }
})
it.after(async () => {
  chdir(before)
  await market.close()
})

it('end with 0, 1 or 2, in words, and as one JSON document where that was asked for', async () => {
  const leaves = leavesOf(buildProgram()).filter(({ name }) => !LEFT_OUT.includes(name))
  const codes = new Map<string, number>()
  const line = either(
    [20, fc.oneof(...leaves.map((leaf) => lineOf(leaf, known)))],
    [1, fc.array(wordOf(known), { maxLength: 5 })],
  )
  const property = fc.asyncProperty(line, async (args) => {
    const ended = await runHere(args, environment)
    codes.set(`exit ${ended.code}`, (codes.get(`exit ${ended.code}`) ?? 0) + 1)
    const flaw = flawOf(args, ended)
    if (flaw)
      throw new Error(
        `${flaw}: affiliate ${JSON.stringify(args)}\n${ended.stdout}\n${ended.stderr}`.slice(0, 4000),
      )
  })
  await fc.assert(property, { numRuns: COMMANDS })
  console.log(
    `\nfuzz of the command line: ${leaves.length} commands, ${COMMANDS} lines, ${JSON.stringify(Object.fromEntries([...codes].sort()))}`,
  )
  assert.ok((codes.get('exit 0') ?? 0) > COMMANDS / 20, 'too few of them did anything')
})

it('leave the books in order', () => market.verify())

it.run()
