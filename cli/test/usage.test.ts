// long
// database: none
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { EXAMPLE_ID } from '../command.ts'
import { buildProgram } from '../program.ts'
import { helpOf, leavesOf } from './command-tree.ts'
import { APP_KEY, ENTRY, environmentOf, runAffiliate } from './run-affiliate.ts'
import { runHere } from './run-here.ts'

const folder = mkdtempSync(join(tmpdir(), 'affiliate-cli-'))
test.after(() => rmSync(folder, { recursive: true, force: true }))

/** Without a key, as in a process. */
const here = (args: readonly string[], environment: Record<string, string> = {}) =>
  runHere(args, { APP_KEY: '', ...environment }, { folder })

test('every command says what it does and shows an example', () => {
  const leaves = leavesOf(buildProgram())
  assert.ok(leaves.length >= 19)
  for (const { name, command } of leaves) {
    const help = helpOf(command)
    assert.ok(command.description() !== '', name)
    assert.match(help, new RegExp(`\\$ affiliate ${name}`), name)
    assert.match(help, /--json/)
    for (const line of help.split('\n')) assert.ok(line.length <= 80 || line.startsWith('  $ '), line)
  }
})

/** Words that are wrong, and what the one line says that answers them. */
const WRONG: [string, RegExp][] = [
  ['nonsense', /unknown command 'nonsense'\. See "affiliate --help"/],
  ['users lst', /unknown command 'lst' \(Did you mean list\?\)/],
  ['user', /unknown command 'user' \(Did you mean users\?\)/],
  ['explain', /unknown command 'explain' \(Did you mean sales explain\?\)/],
  ['flagged resolv', /unknown command 'resolv'\. Did you mean resolve\?/],
  ['users list --rol admin', /unknown option '--rol' \(Did you mean --role\?\)/],
  ['status --jsno', /unknown option '--jsno' \(Did you mean --json\?\)/],
  ['completion powershell', /bash, zsh, fish/],
  [`offers vet ${EXAMPLE_ID}`, /--approve or --reject/],
  [`offers vet ${EXAMPLE_ID} --approve --reject`, /--approve or --reject/],
  ['offers vet x --approve', /is not the id of an offer/],
  ['billing reissue #1001', /is not the id of a billing cycle/],
  ['webhooks replay x --times 0', /whole number from 1 to 1000/],
  ['users list --limit 0', /whole number from 1 to 1000/],
  ['users list --role king', /one of merchant, creator, admin/],
  ['users create-admin a@x.pk', /Not a terminal; pass the password on stdin with --password-stdin\./],
  ['users set-password a@x.pk', /with --password-stdin/],
  ['billing credit a@x.pk 1.005 --reference r --reason x', /at most two decimals/],
  ['billing credit a@x.pk 0 --reference r --reason x', /above zero/],
  ['billing credit a@x.pk 5 --reference= --reason x', /--reference must be one line/],
  ['ledger verify too much', /too many arguments/],
  ['ledger verify --fulll', /unknown option '--fulll' \(Did you mean --full\?\)/],
  // Words of other programs.
  ['version', /unknown command 'version'\. Run "affiliate --version"\./],
  ['logs', /standard output: journalctl -u affiliate/],
  ['ls', /'ls'\. Name what to list, such as "affiliate users list"\./],
  ['rm', /'rm'\. Nothing is deleted: see "users suspend", /],
  ['quit', /'quit'\. There is nothing to quit/],
  ['users ls', /'ls'\. Did you mean users list\?/],
  ['users delete a@x.pk', /'delete'\. Did you mean users suspend\?/],
  ['keys show', /'show'\. See "affiliate keys --help"\./],
  ['billing list', /'list'\. Did you mean billing cycles\?/],
  ['offers --json get', /'get'\. Did you mean offers show\?/],
  ['help nonsense', /unknown command 'nonsense'/],
  ['help users nonsense', /unknown command 'nonsense'/],
  // Values that a shell or the parser takes otherwise.
  ['sales explain', /missing required argument 'order'.*quotes around a name that begins with #/s],
  ['sales explain -A1001', /put -- before the values: affiliate sales explain -- -A1001/],
  ['links set-coupon slug -SANA10', /before the values: affiliate links set-coupon -- slug -SANA10\n/],
]

test('wrong usage: exit 2 and one line, from any folder', async () => {
  for (const [words, pattern] of WRONG) {
    const { code, stdout, stderr } = await here(words.split(' '))
    assert.equal([code, stdout], [2, ''], `${words}: ${stderr}`)
    assert.match(stderr, pattern)
    assert.match(stderr, words.includes('--json') ? /^\{.*\}\n$/ : /^affiliate: .*\n$/, words)
  }
  const { code, stderr } = await runAffiliate(['nonsense'], { folder })
  assert.equal([code, stderr.split('\n').length], [2, 2])
})

test('help of a command is asked for in several ways', async () => {
  for (const [words, first] of [
    ['help users suspend', /^Usage: affiliate users suspend /],
    ['users help suspend', /^Usage: affiliate users suspend /],
    ['help users', /^Usage: affiliate users \[options\] \[command\]/],
    ['help links set-coupon x', /^Usage: affiliate links set-coupon /],
  ] as const)
    assert.match((await here(words.split(' '))).stdout, first)
})

test('with --json an error is a problem object on stderr', async () => {
  const usage = await here(['users', 'list', '--json', '--limit', 'x'])
  assert.is(usage.code, 2)
  assert.is(JSON.parse(usage.stderr).code, 'validation_failed')
  const missing = await here(['users', 'list', '--json'])
  assert.is(missing.code, 1)
  assert.is(missing.stdout, '')
  const { status, code, type } = JSON.parse(missing.stderr)
  assert.equal({ status, code, type }, { status: 503, code: 'unavailable', type: 'about:blank' })
})

test('a group alone shows its commands as wrong usage; asked-for help is none', async () => {
  const [alone, help] = [await here(['users']), await here(['users', '--help'])]
  assert.equal([alone.code, alone.stdout], [2, ''])
  assert.match(alone.stderr, /create-admin/)
  assert.equal([help.code, help.stderr], [0, ''])
  assert.match(help.stdout, /create-admin/)
})

test('no command but serve, seed, demo and db migrate makes a database or a key', async () => {
  for (const words of ['users list', 'db status', 'db backup b.db', 'ledger verify', 'billing close']) {
    const { code, stderr } = await here(words.split(' '))
    assert.is(code, 1)
    assert.match(
      stderr,
      /no database at .*affiliate\.db \(sqlite:\.\/data\/affiliate\.db in the folder \/.*for a new one run "affiliate db migrate"/,
    )
  }
  assert.equal(readdirSync(folder), [])
})

test('db migrate makes database and key, .env and affiliate.env are read, and db status tells', async () => {
  const own = mkdtempSync(join(folder, 'migrate-'))
  writeFileSync(join(own, '.env'), 'DATABASE_URL=sqlite:./books/shop.db\n')
  writeFileSync(join(own, 'affiliate.env'), 'DATABASE_URL=sqlite:./other.db\nPROCESSOR=sandbox\n')
  const first = await runAffiliate(['db', 'migrate', '--json'], { folder: own })
  assert.is(first.code, 0, first.stderr)
  const { migrated, database } = JSON.parse(first.stdout)
  assert.ok(migrated.length >= 1)
  assert.ok(existsSync(join(own, 'books/shop.db')) && existsSync(join(own, 'books/app.key')))
  const environment = { APP_KEY: '', DATABASE_URL: 'sqlite:./books/shop.db' }
  const again = await runHere(['db', 'migrate'], environment, { folder: own })
  assert.match(again.stdout, /Nothing to do/)
  const status = await runHere(['db', 'status', '--json'], environment, { folder: own })
  assert.equal(JSON.parse(status.stdout), {
    database,
    dialect: 'sqlite',
    production: false,
    executed: migrated,
    pending: [],
    unknown: [],
  })
})

test('an unmigrated database, a broken one and a wrong setting give one line each', async () => {
  writeFileSync(join(folder, 'empty.db'), '')
  writeFileSync(join(folder, 'broken.db'), 'this is no database at all, whatever its name says'.repeat(100))
  for (const [DATABASE_URL, wanted] of [
    ['sqlite:empty.db', /lacks \d+ migrations?\. Run "affiliate db migrate"/],
    [
      'sqlite:broken.db',
      /database is damaged\. Stop the service.*restore a backup.* \(file is not a database\)/,
    ],
    ['mysql://x', /setting DATABASE_URL: /],
    [
      'postgres://postgres@127.0.0.1:1/x',
      /server cannot be reached\. See that the server runs.*127\.0\.0\.1:1/,
    ],
  ] as const) {
    const { code, stderr } = await here(['users', 'list'], { APP_KEY, DATABASE_URL })
    assert.is(code, 1, stderr)
    assert.match(stderr, wanted)
    assert.match(stderr, /^affiliate: .*\n$/)
  }
})

test('the fixtures are listed with what they must lead to, without any database', async () => {
  const human = await here(['webhooks', 'fixtures'])
  const json = await here(['webhooks', 'fixtures', '--json'])
  assert.match(human.stdout, /path-landing-site\t.*\taccepted: net 4999\.00, commission 624\.88, fee 62\.49/)
  assert.match(
    human.stdout,
    /payout-failed-after-paid\t.*\tevent set_aside, payout paid, flagged\tpaid payout/,
  )
  const { store_sales, processor } = JSON.parse(json.stdout)
  assert.ok(store_sales.length >= 14 && processor.length >= 5)
})

test('help groups the commands under headings, each on one line, and ends with the options of all', async () => {
  const { stdout } = await here(['--help'])
  for (const heading of ['Start', 'People and offers', 'Review', 'Orders and events', 'Money', 'Operate']) {
    assert.match(stdout, new RegExp(`\\n${heading}:\\n {2}[a-z]`))
  }
  assert.not.match(stdout, /\n(Options|Commands):/)
  for (const args of [['--help'], ['users', '--help'], ['help', 'users', 'suspend']]) {
    const help = (await here(args)).stdout
    assert.match(help, /\n\nGlobal options:\n( {2}.*\n)+$/)
    assert.is(help.match(/--json/g)?.length, args[0] === '--help' ? 2 : 1)
  }
})

test('a closed pipe ends it quietly', () => {
  const line = `'${process.execPath}' '${ENTRY}' webhooks fixtures 2>&1 | head -n 1`
  const output = execFileSync('bash', ['--norc', '-c', line], {
    encoding: 'utf8',
    env: environmentOf(),
    cwd: folder,
  })
  assert.match(output, /^Orders .*\n$/)
})

test('--help loads none of the libraries behind the actions', () => {
  const report = `
    import { registerHooks } from 'node:module'
    const urls = []
    registerHooks({ load: (url, context, next) => (urls.push(url), next(url, context)) })
    process.on('exit', () => process.stderr.write(JSON.stringify(urls)))`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(report)}`, ENTRY, '--help']
  const { stderr } = spawnSync(process.execPath, args, { env: environmentOf(), encoding: 'utf8' })
  const urls: string[] = JSON.parse(stderr)
  const packages = urls.flatMap((url) => /node_modules\/([^/]+)/.exec(url)?.[1] ?? [])
  assert.equal([...new Set(packages)], ['commander'])
  const files = urls.filter((url) => url.startsWith('file:'))
  assert.ok(files.length < 80, `${files.length} files`)
})

test('an output that cannot be written is one line', async () => {
  const own = mkdtempSync(join(folder, 'full-'))
  const settings = { APP_KEY: '', DATABASE_URL: 'sqlite:./data/affiliate.db' }
  assert.is((await runHere(['db', 'migrate'], settings, { folder: own })).code, 0)
  const { status, stderr } = spawnSync(
    'sh',
    ['-c', `exec "${process.execPath}" "${ENTRY}" ledger balances --json >/dev/full`],
    { cwd: own, encoding: 'utf8' },
  )
  assert.is(status, 1)
  assert.match(stderr, /^affiliate: The output cannot be written: ENOSPC[^\n]*\n$/)
})

test.run()
