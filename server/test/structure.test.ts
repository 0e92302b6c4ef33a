// database: none
import { fileURLToPath } from 'node:url'
import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { findCycles, findMutualFolders } from './structure/cycles.ts'
import {
  findBadNames,
  findMisplacedTestFolders,
  findTimedTests,
  findUnfinishedMarks,
  findUnrunTests,
} from './structure/habits.ts'
import { findImportViolations } from './structure/import-direction.ts'
import { findTranslatedWords, WORDS } from './structure/plain-words.ts'
import { findImpureRules } from './structure/purity.ts'
import { splitSource } from './structure/source-text.ts'
import { readPages, readTree, type SourceTree, treeOf, type Violation } from './structure/source-tree.ts'
import { findForeignTables } from './structure/table-owners.ts'
import { findRawTerminalWrites } from './structure/terminal.ts'

const CHECKS = {
  'imports follow the import direction': findImportViolations,
  'rules are pure': findImpureRules,
  'imports form no cycle': findCycles,
  'no two folders import each other': findMutualFolders,
  'files and folders have meaningful kebab-case names': findBadNames,
  'test support is not in production folders': findMisplacedTestFolders,
  'every test runs': findUnrunTests,
  'no test asserts how long something takes, or waits a fixed time': findTimedTests,
  'nothing is marked as unfinished': findUnfinishedMarks,
  'comments and texts use plain words': findTranslatedWords,
  'output to the terminal is printable': findRawTerminalWrites,
  'tables are written by their owner and read as declared': findForeignTables,
} satisfies Record<string, (tree: SourceTree) => Violation[]>

const repository = suite('the repository')
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const tree = await readTree(ROOT)

for (const [name, check] of Object.entries(CHECKS)) {
  repository(name, () => {
    const violations = check(tree).map(({ path, line, why }) => `${path}:${line} ${why}`)
    assert.equal(violations, [])
  })
}

repository('guides, decisions and other pages use plain words', async () => {
  const pages = await readPages(ROOT)
  assert.ok(pages.some(({ path }) => path === 'server/guides/quickstart.md'))
  assert.equal(findTranslatedWords(pages), [])
})

repository('is read: rules and platform are in the tree', () => {
  const paths = tree.map(({ path }) => path)
  for (const path of ['server/schema.ts', 'shared/money.ts', 'shared/client/portal/shell.tsx'])
    assert.ok(paths.includes(path), path)
})

repository.run()

/** An invented file with exactly one violation, which the check must find at that line; `beside`: other files of its tree. */
type BadFile = readonly [
  path: string,
  text: string,
  line: number,
  why: RegExp | string,
  beside?: Record<string, string>,
]

const MARK = `TO${'DO'}`
const TEST = 'server/sales/sales.test.ts'
const ENTITIES = {
  'server/sales/sale.entity.ts': "const Sale = { tableName: 'sales' }\n",
  'server/users/user.entity.ts': "const User = { tableName: 'users' }\n",
}
const impure = (statement: string, why: RegExp): BadFile => {
  return ['server/sales/accept-sale.rule.ts', `const a = 1\n${statement}\n`, 2, why]
}
const foreignTable = (path: string, query: string, why: RegExp): BadFile => {
  return [path, `const a = 1\nawait ${query}\n`, 2, why, ENTITIES]
}

/** What imports what, and why it is refused. */
const ARROWS: [from: string, to: string, why: string][] = [
  ['server/sales/sales.service.ts', './sales.procedures.ts', 'service of sales may not import a procedures'],
  ['server/sales/sales.service.ts', '../http/errors.ts', 'may not import an edge of http'],
  ['server/sales/sales.service.ts', '../../cli/terminal/output.ts', 'may not import an edge'],
  ['server/sales/sales.service.ts', '../app.ts', 'may not import an edge'],
  ['server/sales/sales.store.ts', './sales.service.ts', 'a store of sales may not import a service'],
  ['server/sales/sale.entity.ts', './sales.service.ts', 'an entity of sales may not import a service'],
  ['server/processor/http.ts', '../billing/billing.service.ts', 'a part of processor may not import'],
  ['server/sales/sales.procedures.ts', '../http/rest.ts', 'may not import an edge of http'],
  ['server/sales/sales.procedures.ts', './sales.store.ts', 'a procedure must call the service'],
  ['server/sales/sales.service.ts', '../offers/offers.store.ts', 'only offers may access its rows'],
  ['server/sales/sales.service.ts', 'type ../offers/offer.entity.ts', 'only offers may access its rows'],
  ['server/sales/sales.store.ts', '../offers/offer.entity.ts', 'only offers may access its rows'],
  ['server/http/webhooks.ts', '../inbox/inbox.store.ts', 'only inbox may access its rows'],
  ['cli/users.ts', '../server/users/user.entity.ts', 'only users may access its rows'],
  ['server/sales/sales.procedures.ts', '../ledger/ledger.service.ts', 'only services may use the journal'],
  ['cli/ledger.ts', '../server/ledger/ledger.service.ts', 'only services may use the journal'],
  ['server/sales/sales.store.ts', '../ledger/accounts.ts', 'only services may use the journal'],
  ['server/platform/ids.ts', '../users/users.service.ts', 'platform/ may not import a concept'],
  ['server/platform/ids.ts', 'type ../users/user.entity.ts', 'platform/ may not import a concept'],
  ['server/schema.ts', './users/users.store.ts', 'only users may access its rows'],
  ['server/platform/log.ts', '../http/errors.ts', 'platform/ may not import a concept'],
  ['server/migrations/00001-a/tables.ts', '../../users/users.store.ts', 'platform/ may not import a concept'],
  ['shared/money.ts', '../server/platform/api/refusal.ts', 'shared/ may not import server or cli'],
  ['shared/money.ts', 'type ../cli/terminal/output.ts', 'shared/ may not import server or cli'],
  ['shared/client/index.ts', '../../server/http/router.ts', 'shared/ may not import server or cli'],
  ['server/sales/sales.service.ts', './sales.test.ts', 'may not import tests, test support or scripts'],
  ['server/sales/sales.service.ts', '../test/testkit/a.ts', 'may not import tests, test support or scripts'],
  ['cli/commands/a.ts', '../test/run-here.ts', 'may not import tests, test support or scripts'],
  ['server/sales/sales.service.ts', '../../scripts/test.ts', 'may not import tests, test support or scripts'],
]

const BAD_FILES: Record<keyof typeof CHECKS, BadFile[]> = {
  'tables are written by their owner and read as declared': [
    foreignTable('server/links/links.store.ts', "tx.updateTable('users')", /writes users; only users may/),
    foreignTable('server/links/links.service.ts', "changeRow(tx, 'users', user, {})", /writes users/),
    foreignTable('server/links/links.store.ts', "db.selectFrom('sales')", /reads sales of sales/),
    foreignTable('server/offers/offers.store.ts', '`select 1 from a join sales on true`', /reads sales/),
    foreignTable('server/reports/status.service.ts', "tx.deleteFrom('sales')", /writes sales/),
    foreignTable('cli/commands/users.ts', '`update users set role = null`', /writes users/),
  ],
  'imports follow the import direction': [
    ...ARROWS.map(([path, to, why]): BadFile => {
      const [, typeOnly = '', target] = /^(type )?(.*)$/.exec(to) ?? []
      return [path, `import { a } from 'zod'\nimport ${typeOnly}{ b } from '${target}'\n`, 2, why]
    }),
    ...[
      ["\nexport async function late() {\n  await import('./sales.service.ts')\n}\n", 3] as const,
      ["export {\n  a,\n  b,\n} from './sales.service.ts'\n", 4] as const,
    ].map(([text, line]): BadFile => {
      return ['server/sales/sales.store.ts', text, line, /a store of sales may not import/]
    }),
    ...['../../sales/commission.rule.ts', '../../../shared/money.ts', 'luxon'].map((target): BadFile => {
      const text = `import { a } from './exact.ts'\nimport type { b } from '${target}'\n`
      return ['server/test/oracle/sale.ts', text, 2, /the oracle must not share code/]
    }),
  ],
  'rules are pure': [
    impure('export async function decide() {}', /"async": a rule that is asynchronous/),
    impure('await facts', /"await": a rule that is asynchronous/),
    impure('const then = Promise.all([])', /"Promise"/),
    impure('const now = Date.now()', /"Date.now": a rule that reads the clock/),
    impure('const now = new Date()', /"new Date": a rule that reads the clock/),
    impure('const now = new Date( )', /reads the clock/),
    impure('const now = new Date', /reads the clock/),
    impure('const now = Date()', /reads the clock/),
    impure('const now = DateTime.now()', /reads the clock/),
    impure('const now = DateTime.utc()', /reads the clock/),
    impure('const now = performance.now()', /"performance": a rule that reads the clock/),
    impure('const dice = Math.random()', /uses randomness/),
    impure('const dice = crypto.getRandomValues(a)', /uses randomness/),
    impure('const dice = randomUUID()', /uses randomness/),
    impure('const home = process.env', /"process.": a rule that reads its process/),
    impure("const home = process['env']", /reads its process/),
    impure('console.log(a)', /has side effects/),
    impure('setTimeout(a, 1)', /has side effects/),
    impure('let count = 0', /keeps state between calls/),
    impure("import { readFileSync } from 'node:fs'", /imports node:fs: a rule imports only types/),
    impure("import { z } from 'zod'", /imports zod: a rule imports only/),
    impure("import { listSales } from './sales.store.ts'", /imports server\/sales\/sales\.store\.ts: a rule/),
    impure("import { newId } from '../platform/ids.ts'", /imports server\/platform\/ids\.ts: a rule/),
    impure("import 'luxon-plugin'", /imports luxon-plugin: a rule/),
  ],
  'no two folders import each other': [
    [
      'server/sales/sales.service.ts',
      "import { a } from 'zod'\nimport { b } from '../clicks/clicks.service.ts'\n",
      2,
      /sales\/ and clicks\/ import each other/,
      { 'server/clicks/clicks.service.ts': "import { c } from '../sales/sales.service.ts'\n" },
    ],
  ],
  'imports form no cycle': [
    [
      'server/sales/a.service.ts',
      "import { b } from './b.service.ts'\n",
      1,
      /sales\/a\.service\.ts → server\/sales\/b\.service\.ts → server\/sales\/a\.service\.ts/,
      { 'server/sales/b.service.ts': "export * from './a.service.ts'\n" },
    ],
    ['shared/self.ts', "import { b } from './self.ts'\n", 1, /shared\/self\.ts → shared\/self\.ts/],
  ],
  'files and folders have meaningful kebab-case names': [
    ...['acceptSale.ts', 'Sale.entity.ts', 'accept_sale.rule.ts', 'accept-.ts'].map(
      (name): BadFile => [`server/sales/${name}`, '', 1, /kebab/],
    ),
    ...['server/utils/a.ts', 'cli/helpers/a.ts', 'shared/common/a.ts', 'shared/utils.ts'].map(
      (path): BadFile => [path, '', 1, /does not say/],
    ),
  ],
  'test support is not in production folders': [
    'server/sales/test/a.ts',
    'cli/commands/testing/a.ts',
    'server/proof/a.ts',
    'shared/test/a.ts',
  ].map((path) => [path, '', 1, /in a production folder/]),
  'comments and texts use plain words': [
    ...Object.keys(WORDS).map((word): BadFile => {
      const text = `const a = 1\n/** Callers are ${word.toUpperCase()} here. */\n`
      return ['server/invented/a.ts', text, 2, new RegExp(`says "${word}"`)]
    }),
    ...["const a = 'A client is told.'\n", 'const a = `Is it told?`\n', 'const a = /told/\n'].map(
      (text): BadFile => ['cli/invented/a.ts', text, 1, /says "told"/],
    ),
    ['cli/invented/a.ts', '/**\n * The lines of\n * which some wait.\n */\n', 2, /says "of which"/],
  ],
  'every test runs': [
    [TEST, "import { test } from 'uvu'\ntest('one', () => {})\n// test.run()\n", 1, /runs none of its tests/],
    [TEST, "const a = suite('a')\nconst b = suite('b')\nb.run()\n", 1, /never calls a\.run\(\)/],
    [TEST, "const a = suite('a')\ntest('x', () => {})\na.run()\n", 2, /never calls test\.run\(\)/],
    [TEST, "test('x', () => {})\ntest.only('y', () => {})\ntest.run()\n", 2, /only some of its tests/],
  ],
  'no test asserts how long something takes, or waits a fixed time': (
    [
      ['assert.ok(performance.now() - begun < 1000)', /measures how long something took/],
      ['await new Promise((resolve) => setTimeout(resolve, 100))', /waits a fixed time/],
      ["import { setTimeout as pause } from 'node:timers/promises'", /waits a fixed time/],
      [`it('ends within ${300} ms', () => {})`, /says "within/],
    ] as const
  ).map(([line, why]) => [TEST, `test.run()\n${line}\n`, 2, why]),
  'nothing is marked as unfinished': [
    ['cli/a.ts', `\n// ${MARK}: more\n`, 2, /finish it/],
    ['cli/a.ts', `throw new Error('Not implem${'ented'}')\n`, 1, /finish it/],
  ],
  'output to the terminal is printable': [
    ['process.stdout.write(row.title)', 1] as const,
    ['console.log(user.displayName)', 1] as const,
    ["process['stderr'].write(flag.summary)", 1] as const,
    ['const stream = process.stderr\nstream.write(offer.title)', 2] as const,
    ['writeSync(1, row.reason)', 1] as const,
    ['const answer = await lines.question(offer.title)', 1] as const,
  ].map(([text, line]) => ['cli/commands/offers.ts', text, line, /raw text/]),
}

const negative = suite('each check finds')

for (const [name, check] of Object.entries(CHECKS)) {
  const bad = BAD_FILES[name as keyof typeof CHECKS]
  for (const [path, text, line, why, beside] of bad) {
    negative(`${name}: ${path} with ${JSON.stringify(text.slice(0, 80))}`, () => {
      const violations = check(treeOf({ [path]: text, ...beside }))
      assert.is(violations.length, 1, `found once: ${JSON.stringify(violations)}`)
      assert.match(violations[0]?.why ?? '', why)
      assert.is(violations[0]?.line, line)
    })
  }
}

negative.run()

const HEALTHY = {
  'server/main.ts': "import { openApp } from './app.ts'\n",
  'server/app.ts':
    "import { post } from './ledger/ledger.service.ts'\nimport { a } from './sales/sales.service.ts'\n",
  'server/http/router.ts': "import { a } from '../sales/sales.procedures.ts'\n",
  'server/http/webhooks.ts': "import { receive } from '../inbox/inbox.service.ts'\n",
  'server/http/trpc.ts': "import { log } from '../platform/log.ts'\n",
  'server/sales/sales.procedures.ts':
    "import { builder } from '../platform/api/procedure.ts'\nimport { list } from './sales.service.ts'\n",
  'server/sales/sales.service.ts': `import { post } from '../ledger/ledger.service.ts'
import { offerOf } from '../offers/offers.service.ts'
import { decide } from './accept-sale.rule.ts'
import { insertSales } from './sales.store.ts'
`,
  'server/sales/accept-sale.rule.ts': `import { DateTime } from 'luxon'
import type { OfferRecord } from '../offers/offers.service.ts'
import { rateOf } from '../../shared/rates.ts'
import { commissionOn } from './commission.rule.ts'
/** Not async, no Date.now() and no process.env, which this comment may say. */
const text = 'await Date.now()'
const day = new Date(facts.at)
const half = facts.process / 2 / DateTime.fromMillis(facts.at).day
const pattern = /await[/]'/
function late(offer: OfferRecord) { let count = 0; return count }
`,
  'server/sales/commission.rule.ts': "import type { SaleFacts } from './sale-facts.ts'\n",
  'server/sales/sales.store.ts':
    "import { Sale } from './sale.entity.ts'\nimport type { Facts } from './accept-sale.rule.ts'\nconst rows = db.selectFrom('sales')\n",
  'server/reports/status.store.ts':
    "// From sales of all.\nconst rows = db.selectFrom('sales').innerJoin('users')\n",
  'server/sales/sale.entity.ts':
    "import { User } from '../users/user.entity.ts'\nimport { id } from '../platform/columns.ts'\nconst Sale = { tableName: 'sales' }\n",
  'server/schema.ts': "import { Sale } from './sales/sale.entity.ts'\n",
  'server/migrator.ts': "const list = () => import('./migrations/index.ts')\n",
  'server/jobs/schedule.ts': "import { closeDue } from '../billing/billing.service.ts'\n",
  'cli/serve.ts':
    "import { money } from '../shared/money.ts'\nconst app = await import('../server/app.ts')\n",
  'shared/client/index.ts': "import type { Router } from '../../server/http/router.ts'\n",
  'server/sales/sales.test.ts': `import { Offer } from '../offers/offer.entity.ts'
const source = \`import { a } from '../http/rest.ts'
export default \${source('test.only(')}\`
for (const name of ['a']) { const sales = suite(name); sales.run() }
`,
}

test('a healthy tree has no violations', () => {
  for (const check of Object.values(CHECKS)) assert.equal(check(treeOf(HEALTHY)), [])
})

test('code, comments, strings, templates and regular expressions are separated', () => {
  const text = `const a = 'x // y' // c\nconst b = /['"\`/*]/.test(\`t \${a ? \`in\` : '}'} u\`) / 2 /* d\n */ + e`
  const { code, comments, literals } = splitSource('a.ts', text)
  assert.is(
    code.replace(/ +/g, ' '),
    "const a = ' ' \nconst b = / /.test(` $" + "{a ? ` ` : ' '} `) / 2 \n + e",
  )
  assert.is(comments.replace(/ +/g, ' '), ' // c\n /* d\n */ ')
  assert.is(literals.replace(/\s+/g, ' ').trim(), `x // y ['"\`/*] t in } u`)
  assert.is(code.length, text.length)
})

test.run()
