import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The folders whose `*.test.ts` files the test command runs; a test anywhere else would run nowhere. */
export const TEST_ROOTS = ['server', 'cli', 'shared', 'scripts', 'fixtures'] as const

/** Ends a file that hangs. A hundred times what most files take, so that none ends early on a slow and busy machine. */
const DEFAULT_LIMIT_SECONDS = 1200

export interface TestFile {
  /** From the repository's root, with forward slashes. */
  path: string
  /** Milliseconds after which the file is stopped and counts as failed. */
  limit: number
  /** Whether it takes long, so that it starts before the others. */
  long: boolean
  /** Whether it must wait for PostgreSQL. */
  database: boolean
  /** Whether it spends most of its time waiting, so that it may run beside as many others as there are jobs. */
  waits: boolean
  /** Whether what it runs counts as coverage of the rules and the shared code: only their own tests do. */
  measured: boolean
  /** Whether it runs only with a proof, or when a filter names it. */
  proofOnly: boolean
  /** Whether it takes its size or its random numbers from a proof, so that it does there what it does not in `npm test`. */
  sized: boolean
  /** Whether it may run in one process with its neighbors. */
  shares: boolean
  /** What the file gives as the names of its skipped tests. */
  skips: string[]
}

/** All files under the roots (paths from `root`), sorted, without `node_modules` and hidden folders. */
export async function listFiles(root: string, folders: readonly string[]): Promise<string[]> {
  const found: string[] = []
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(ignoreMissing)
    for (const entry of entries) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory() && entry.name !== 'node_modules' && !entry.name.startsWith('.'))
        await walk(path)
      else if (entry.isFile()) found.push(path)
    }
  }
  await Promise.all(folders.map(walk))
  return found.sort()
}

/**
 * The test files whose path contains one of the filters (without filters, all but those for proofs only), in the order in which they start:
 * first those that need no database (it boots meanwhile), then those that take long, then by name. Those that may share a process are
 * neighbors, so that few processes load the code.
 */
export async function findTests(root: string, filters: string[] = []): Promise<TestFile[]> {
  const paths = (await listFiles(root, TEST_ROOTS)).filter(
    (path) =>
      path.endsWith('.test.ts') && (filters.length === 0 || filters.some((part) => path.includes(part))),
  )
  const files = await Promise.all(
    paths.map(async (path) => describeTest(path, await readFile(join(root, path), 'utf8'))),
  )
  const chosen = filters.length === 0 ? files.filter((file) => !file.proofOnly) : files
  return chosen.sort(
    (a, b) =>
      Number(a.database) - Number(b.database) ||
      Number(b.measured) - Number(a.measured) ||
      Number(b.shares) - Number(a.shares) ||
      Number(b.long) - Number(a.long) ||
      (a.path < b.path ? -1 : 1),
  )
}

/**
 * Reads what a test file says of itself in the comment lines at its top: `// long`, `// time limit: 10 s`, `// database: none`,
 * `// mostly waits`, `// own process` and `// proof only`. All but those with one of the last two may share a process. Rules and
 * shared code never need a database, so their tests do not have to say it.
 */
export function describeTest(path: string, text: string): TestFile {
  const header = /^(?:\/\/.*\n)*/.exec(text)?.[0] ?? ''
  const seconds = /^\/\/ time limit: (\d+) s$/m.exec(header)?.[1] ?? DEFAULT_LIMIT_SECONDS
  const waits = /^\/\/ mostly waits$/m.test(header)
  const pure = path.endsWith('.rule.test.ts') || path.startsWith('shared/')
  return {
    path,
    limit: Number(seconds) * 1000,
    long: /^\/\/ long$/m.test(header),
    measured: path.endsWith('.rule.test.ts') || /^shared\/(?:client\/)?[^/]+\.test\.ts$/.test(path),
    waits,
    shares: !/^\/\/ (own process|proof only)$/m.test(header),
    proofOnly: /^\/\/ proof only$/m.test(header),
    sized: /\/testkit\/(proof-size|property|market-suites)\.ts'/.test(text),
    database: !pure && !/^\/\/ database: none$/m.test(header),
    skips: [...text.matchAll(/\.skip\(\s*(['"`])(.+?)\1/g)].map((match) => match[2] ?? ''),
  }
}

/** How many files share a process. More would leave processors idle at the end of a run. */
const GROUP_SIZE = 64

/** Neighbors that may run in one process, and need the same of the runner, together. */
export function groupTests(files: readonly TestFile[]): TestFile[][] {
  const groups: TestFile[][] = []
  for (const file of files) {
    const last = groups.at(-1)
    const beside = last?.[0]
    const fits = beside?.shares && file.shares && last && last.length < GROUP_SIZE
    if (fits && beside.database === file.database && beside.measured === file.measured) last.push(file)
    else groups.push([file])
  }
  return groups
}

function ignoreMissing(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT') return []
  throw error
}
