import { lineAt } from './source-text.ts'
import { isTest, type SourceFile, type SourceTree, type Violation, violationsIn } from './source-tree.ts'

const KEBAB_FILE = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9]+(?:-[a-z0-9]+)*)*\.tsx?$/
/** Names that say nothing about the content. */
const EMPTY_FOLDER = /^(?:utils?|helpers?|common|misc)$/
const EMPTY_FILE = /^(?:utils?|helpers?|misc)$/
const PRODUCTION_ROOTS = ['server', 'cli', 'shared']
const TEST_FOLDER = /^(?:tests?|testing|testbed|testkit|proofs?|mocks?|__\w+__)$/
// Split, so that this file does not match itself.
const UNFINISHED = new RegExp(String.raw`\b(?:TO${'DO'}|FIX${'ME'}|HA${'CK'}|W${'IP'}|TB${'D'})\b`, 'g')
const NOT_THERE = new RegExp(String.raw`\bnot (?:yet )?implem${'ented'}\b`, 'gi')

export function findBadNames(tree: SourceTree): Violation[] {
  return tree.flatMap(({ path }) => {
    const folders = path.split('/')
    const name = folders.pop() ?? ''
    const stem = name.replace(/\..*$/, '')
    const empty = [
      ...folders.filter((part) => EMPTY_FOLDER.test(part)),
      ...(EMPTY_FILE.test(stem) ? [stem] : []),
    ]
    return [
      ...(KEBAB_FILE.test(name) ? [] : [{ path, line: 1, why: 'has a file name that is not kebab-case' }]),
      ...empty.map((part) => ({ path, line: 1, why: `"${part}" does not say what is inside` })),
    ]
  })
}

/** Test code outside server/test and cli/test: it would count as production code. */
export function findMisplacedTestFolders(tree: SourceTree): Violation[] {
  return tree.flatMap(({ path }) => {
    const [top = '', ...folders] = path.split('/').slice(0, -1)
    if (!PRODUCTION_ROOTS.includes(top)) return []
    const at = folders.findIndex((folder) => TEST_FOLDER.test(folder))
    const allowed = at === -1 || (at === 0 && folders[0] === 'test' && top !== 'shared')
    return allowed
      ? []
      : [{ path, line: 1, why: `"${folders[at]}" in a production folder: move it to ${top}/test` }]
  })
}

/** uvu passes a file whose suites are never run, and skips every test beside an `only`. */
export function findUnrunTests(tree: SourceTree): Violation[] {
  return tree
    .filter(({ path }) => isTest(path))
    .flatMap((file) => [...findUnrunSuites(file), ...findOnly(file)])
}

export function findUnfinishedMarks(tree: SourceTree): Violation[] {
  return tree.flatMap(({ path, text, comments }) =>
    [...comments.matchAll(UNFINISHED), ...text.matchAll(NOT_THERE)].map((match) => ({
      path,
      line: lineAt(text, match.index),
      why: `says "${match[0]}": finish it or open an issue`,
    })),
  )
}

/** What makes a test depend on the machine's speed. `eventually` waits for a state. */
const TIMED: [pattern: RegExp, why: string][] = [
  [
    /\bperformance\.now\(\)\s*-|\bDate\.now\(\)\s*-\s*(?:start|begun|before|since|from|at)\b/g,
    'measures how long something took',
  ],
  [/\bsetTimeout as \w+|\bnew Promise\(\((\w*)\) => setTimeout\(\1,/g, 'waits a fixed time'],
]
const TIMED_NAME =
  /\b(?:within|under|in less than|for more than) [0-9.,]+ ?(?:ms|milliseconds|s|seconds)\b|\bpg_sleep\(/g
/** Files whose times are no wait and no bound. */
const TIMED_ALLOWED: Record<string, string> = {
  'server/platform/database/postgres-pool.test.ts': 'simulates a server that answers late',
  'server/platform/database/postgresql.test.ts': 'closes at many moments of a connection, and each is good',
  'server/platform/database/sqlite.test.ts': 'lets the event loop turn three times',
  'server/test/failover/failover.test.ts': 'outages last for a time',
  'server/notifications/channels/webhooks/deliver-many.test.ts': 'prints how long it took',
}

/** Tests assert orders, counts and states. Times belong to benches. */
export function findTimedTests(tree: SourceTree): Violation[] {
  return tree
    .filter(({ path }) => isTest(path) && !(path in TIMED_ALLOWED))
    .flatMap((file) => [
      ...TIMED.flatMap(([pattern, why]) => violationsIn(file, pattern, () => why)),
      ...[...file.text.matchAll(TIMED_NAME)].map((match) => ({
        path: file.path,
        line: lineAt(file.text, match.index),
        why: `says "${match[0]}"`,
      })),
    ])
}

function findUnrunSuites(file: SourceFile): Violation[] {
  const { path, code } = file
  if (!/\.\s*run\s*\(/.test(code)) return [{ path, line: 1, why: 'runs none of its tests: no run()' }]
  const suites = [...code.matchAll(/\b(?:const|let)\s+([\w$]+)\s*=\s*suite\b/g)]
  const plain = [...code.matchAll(/^(test)\s*\(/gm)].slice(0, 1)
  return [...suites, ...plain]
    .filter(
      ([, name = '']) =>
        !new RegExp(String.raw`(?<![\w$])${name.replaceAll('$', '\\$')}\)?\s*\.\s*run\s*\(`).test(code),
    )
    .map(({ index, 1: name }) => ({ path, line: lineAt(code, index), why: `never calls ${name}.run()` }))
}

function findOnly(file: SourceFile): Violation[] {
  return violationsIn(file, /(?<=[\w$])\s*\.\s*only\s*\(/g, () => 'runs only some of its tests: only()')
}
