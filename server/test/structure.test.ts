// database: none
import { fileURLToPath } from 'node:url'
import { suite, test } from 'uvu'
import * as assert from 'uvu/assert'
import { findCycles, findMutualFolders } from './structure/cycles.ts'
import {
  findBadNames,
  findDefaultExports,
  findMisplacedTestFolders,
  findTimedTests,
  findUnfinishedMarks,
  findUnrunTests,
} from './structure/habits.ts'
import { findImportViolations } from './structure/import-direction.ts'
import { findTranslatedWords, WORDS } from './structure/plain-words.ts'
import { findImpureRules } from './structure/purity.ts'
import { splitSource } from './structure/source-text.ts'
import { readTree, type SourceTree, treeOf, type Violation } from './structure/source-tree.ts'
import { findForeignTables } from './structure/table-owners.ts'
import { findRawTerminalWrites } from './structure/terminal.ts'

const CHECKS = {
  'imports follow the import direction': findImportViolations,
  'rules are pure': findImpureRules,
  'imports form no cycle': findCycles,
  'no two folders import each other': findMutualFolders,
  'exports have names': findDefaultExports,
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
const tree = await readTree(fileURLToPath(new URL('../..', import.meta.url)))

for (const [name, check] of Object.entries(CHECKS)) {
  repository(name, () => {
    const violations = check(tree).map(({ path, line, why }) => `${path}:${line} ${why}`)
    assert.equal(violations, [])
  })
}

repository('is read: rules and platform are in the tree', () => {
  const paths = tree.map(({ path }) => path)
  assert.ok(paths.includes('server/schema.ts') && paths.includes('shared/money.ts'))
})

repository.run()

/** An invented file with exactly one violation, which the check must find at that line. */
interface BadFile {
  check: keyof typeof CHECKS
  path: string
  text: string
  line?: number
  why: RegExp | string
  beside?: Record<string, string>
}

const MARK = `TO${'DO'}`
const impure = (statement: string, why: RegExp): BadFile => {
  const text = `const a = 1\n${statement}\n`
  return { check: 'rules are pure', path: 'server/sales/accept-sale.rule.ts', text, line: 2, why }
}
const badTest = (text: string, line: number, why: RegExp): BadFile => {
  return { check: 'every test runs', path: 'server/sales/sales.test.ts', text, line, why }
}

const ENTITIES = {
  'server/sales/sale.entity.ts': "const Sale = { tableName: 'sales' }\n",
  'server/users/user.entity.ts': "const User = { tableName: 'users' }\n",
}
const foreignTable = (path: string, query: string, why: RegExp): BadFile => {
  const text = `const a = 1\nawait ${query}\n`
  const check = 'tables are written by their owner and read as declared'
  return { check, path, text, line: 2, why, beside: ENTITIES }
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

const BAD_FILES: BadFile[] = [
  foreignTable('server/links/links.store.ts', "tx.updateTable('users')", /writes users; only users may/),
  foreignTable('server/links/links.service.ts', "changeRow(tx, 'users', user, {})", /writes users/),
  foreignTable('server/links/links.store.ts', "db.selectFrom('sales')", /reads sales of sales/),
  foreignTable('server/offers/offers.store.ts', '`select 1 from a join sales on true`', /reads sales/),
  foreignTable('server/reports/status.service.ts', "tx.deleteFrom('sales')", /writes sales/),
  foreignTable('cli/commands/users.ts', '`update users set role = null`', /writes users/),
  ...ARROWS.map(([path, to, why]): BadFile => {
    const [, typeOnly = '', target] = /^(type )?(.*)$/.exec(to) ?? []
    const text = `import { a } from 'zod'\nimport ${typeOnly}{ b } from '${target}'\n`
    return { check: 'imports follow the import direction', path, text, line: 2, why }
  }),
  {
    check: 'imports follow the import direction',
    path: 'server/sales/sales.store.ts',
    text: "\nexport async function late() {\n  await import('./sales.service.ts')\n}\n",
    line: 3,
    why: /a store of sales may not import/,
  },
  {
    check: 'imports follow the import direction',
    path: 'server/sales/sales.store.ts',
    text: "export {\n  a,\n  b,\n} from './sales.service.ts'\n",
    line: 4,
    why: /a store of sales may not import/,
  },

  ...['../../sales/commission.rule.ts', '../../../shared/money.ts', 'luxon'].map((target): BadFile => {
    const text = `import { a } from './exact.ts'\nimport type { b } from '${target}'\n`
    const path = 'server/test/oracle/sale.ts'
    return {
      check: 'imports follow the import direction',
      path,
      text,
      line: 2,
      why: /the oracle must not share code/,
    }
  }),

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

  {
    check: 'no two folders import each other',
    path: 'server/sales/sales.service.ts',
    text: "import { a } from 'zod'\nimport { b } from '../clicks/clicks.service.ts'\n",
    line: 2,
    why: /sales\/ and clicks\/ import each other/,
    beside: { 'server/clicks/clicks.service.ts': "import { c } from '../sales/sales.service.ts'\n" },
  },
  {
    check: 'imports form no cycle',
    path: 'server/sales/a.service.ts',
    text: "import { b } from './b.service.ts'\n",
    why: /sales\/a\.service\.ts → server\/sales\/b\.service\.ts → server\/sales\/a\.service\.ts/,
    beside: { 'server/sales/b.service.ts': "export * from './a.service.ts'\n" },
  },
  {
    check: 'imports form no cycle',
    path: 'shared/self.ts',
    text: "import { b } from './self.ts'\n",
    line: 1,
    why: /shared\/self\.ts → shared\/self\.ts/,
  },
  {
    check: 'exports have names',
    path: 'cli/a.ts',
    text: '\nexport default 1\n',
    line: 2,
    why: /default export/,
  },
  {
    check: 'exports have names',
    path: 'cli/a.ts',
    text: 'export { a as default }\n',
    line: 1,
    why: /default export/,
  },
  ...['acceptSale.ts', 'Sale.entity.ts', 'accept_sale.rule.ts', 'accept-.ts'].map((name): BadFile => {
    return {
      check: 'files and folders have meaningful kebab-case names',
      path: `server/sales/${name}`,
      text: '',
      why: /kebab/,
    }
  }),
  ...['server/utils/a.ts', 'cli/helpers/a.ts', 'shared/common/a.ts', 'shared/utils.ts'].map(
    (path): BadFile => {
      return {
        check: 'files and folders have meaningful kebab-case names',
        path,
        text: '',
        why: /does not say/,
      }
    },
  ),
  ...['server/sales/test/a.ts', 'cli/commands/testing/a.ts', 'server/proof/a.ts', 'shared/test/a.ts'].map(
    (path): BadFile => {
      const why = /in a production folder/
      return { check: 'test support is not in production folders', path, text: '', why }
    },
  ),
  ...Object.keys(WORDS).map((word): BadFile => {
    const text = `const a = 1\n/** Callers are ${word.toUpperCase()} here. */\n`
    const why = new RegExp(`says "${word}"`)
    return { check: 'comments and texts use plain words', path: 'server/invented/a.ts', text, line: 2, why }
  }),
  ...["const a = 'A client is told.'\n", 'const a = `Is it told?`\n', 'const a = /told/\n'].map(
    (text): BadFile => {
      return {
        check: 'comments and texts use plain words',
        path: 'cli/invented/a.ts',
        text,
        line: 1,
        why: /says "told"/,
      }
    },
  ),
  {
    check: 'comments and texts use plain words',
    path: 'cli/invented/a.ts',
    text: '/**\n * The lines of\n * which some wait.\n */\n',
    line: 2,
    why: /says "of which"/,
  },
  badTest("import { test } from 'uvu'\ntest('one', () => {})\n// test.run()\n", 1, /runs none of its tests/),
  badTest("const a = suite('a')\nconst b = suite('b')\nb.run()\n", 1, /never calls a\.run\(\)/),
  badTest("const a = suite('a')\ntest('x', () => {})\na.run()\n", 2, /never calls test\.run\(\)/),
  ...(
    [
      ['assert.ok(performance.now() - begun < 1000)', /measures how long something took/],
      ['await new Promise((resolve) => setTimeout(resolve, 100))', /waits a fixed time/],
      ["import { setTimeout as pause } from 'node:timers/promises'", /waits a fixed time/],
      [`it('ends within ${300} ms', () => {})`, /says "within/],
    ] as const
  ).map(([line, why]): BadFile => {
    const check = 'no test asserts how long something takes, or waits a fixed time'
    return { check, path: 'server/sales/sales.test.ts', text: `test.run()\n${line}\n`, line: 2, why }
  }),
  badTest("test('x', () => {})\ntest.only('y', () => {})\ntest.run()\n", 2, /only some of its tests/),
  {
    check: 'nothing is marked as unfinished',
    path: 'cli/a.ts',
    text: `\n// ${MARK}: more\n`,
    line: 2,
    why: /finish it/,
  },
  {
    check: 'nothing is marked as unfinished',
    path: 'cli/a.ts',
    text: `throw new Error('Not implem${'ented'}')\n`,
    line: 1,
    why: /finish it/,
  },
  ...[
    'process.stdout.write(row.title)',
    'console.log(user.displayName)',
    "process['stderr'].write(flag.summary)",
    'const stream = process.stderr\nstream.write(offer.title)',
    'writeSync(1, row.reason)',
    'const answer = await lines.question(offer.title)',
  ].map((text): BadFile => {
    const why = /raw text/
    return { check: 'output to the terminal is printable', path: 'cli/commands/offers.ts', text, why }
  }),
]

const negative = suite('each check finds')

for (const { check, path, text, line, why, beside } of BAD_FILES) {
  negative(`${check}: ${path} with ${JSON.stringify(text.slice(0, 80))}`, () => {
    const violations = CHECKS[check](treeOf({ [path]: text, ...beside }))
    assert.is(violations.length, 1, `found once: ${JSON.stringify(violations)}`)
    assert.match(violations[0]?.why ?? '', why)
    if (line) assert.is(violations[0]?.line, line)
  })
}

negative('a violation of every check', () => {
  assert.equal([...new Set(BAD_FILES.map(({ check }) => check))].sort(), Object.keys(CHECKS).sort())
})

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
  const { code, comments, literals } = splitSource(text)
  assert.is(
    code.replace(/ +/g, ' '),
    "const a = ' ' \nconst b = / /.test(` $" + "{a ? ` ` : ' '} `) / 2 \n + e",
  )
  assert.is(comments.replace(/ +/g, ' '), ' // c\n /* d\n */ ')
  assert.is(literals.replace(/\s+/g, ' ').trim(), `x // y ['"\`/*] t in } u`)
  assert.is(code.length, text.length)
})

test.run()
