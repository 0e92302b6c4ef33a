import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openPlace } from './proof/place.ts'
import { copyTree, type TreeCopy } from './proof/plant.ts'
import { PLANTED_BUGS, type PlantedBug } from './proof/planted-bugs.ts'
import { PROOFS, type Proof, sizeOf } from './proof/proofs.ts'
import { findTests, groupTests } from './testing/find-tests.ts'
import { seconds } from './testing/report.ts'
import { type FileResult, runGroup } from './testing/run-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const USAGE = `npm run proof:bugs -- [--only TEXT]... [--sqlite-only]

  Plants each bug, one at a time, in a copy of the tree, and runs the short forms of the proofs until one catches it,
  starting with the proof that should. Exit code 1: a bug was not caught. --only plants those whose name or file contains a TEXT.
  --sqlite-only skips bugs that show on PostgreSQL only.`

interface Failure {
  proof: string
  file: string
  message: string
}

interface Verdict {
  bug: PlantedBug
  /** The first failure; `null`: the bug was not caught. */
  caughtBy: Failure | null
  took: number
}

/** The proofs that bugs are planted for. */
const HUNTERS = PROOFS.filter(({ name }) => PLANTED_BUGS.some(({ expectedIn }) => expectedIn === name))

/** The proof that should catch the bug, then the others. */
function inOrder(bug: PlantedBug): Proof[] {
  return HUNTERS.toSorted((a, b) => Number(b.name === bug.expectedIn) - Number(a.name === bug.expectedIn))
}

interface Setting {
  root: string
  env: NodeJS.ProcessEnv
  signal: AbortSignal
}

/**
 * Runs the files of a proof until an assertion fails, those beside the bug first. Crashes and time limits do not count: they may have
 * other causes.
 */
async function failureOf(proof: Proof, { root, env, signal }: Setting, beside = ''): Promise<Failure | null> {
  const files = await findTests(root, proof.files)
  const { near = [], far = [] } = Object.groupBy(files, ({ path }) =>
    dirname(path) === dirname(beside) ? 'near' : 'far',
  )
  for (const group of [...near.map((file) => [file]), ...groupTests(far)]) {
    if (signal.aborted) throw new Error('interrupted')
    const results = await runGroup(group, { root, signal, env: { ...env, ...sizeOf(proof, 'short') } })
    for (const result of results) {
      if (result.failed > (result.problem ? 1 : 0))
        return { proof: proof.name, file: result.path, message: messageOf(result) }
      if (result.problem) console.log(`      ${result.path} ${result.problem}: not counted`)
    }
  }
  return null
}

const held = new Set<Proof>()

/** Without a bug a proof must pass, or its failures prove nothing. */
async function holdWithoutBugs(proof: Proof, setting: Setting): Promise<void> {
  if (held.has(proof)) return
  const failure = await failureOf(proof, setting)
  if (failure) throw new Error(`${proof.name} fails without a bug: ${failure.file}: ${failure.message}`)
  console.log(`ok    ${proof.name} passes without a bug`)
  held.add(proof)
}

async function hunt(tree: TreeCopy, bug: PlantedBug, setting: Setting): Promise<Failure | null> {
  for (const proof of inOrder(bug)) {
    await holdWithoutBugs(proof, setting)
    const failure = await tree.withBug(bug, () => failureOf(proof, setting, bug.file))
    if (failure) return failure
  }
  return null
}

/** The first two lines of the first failed test. */
function messageOf({ output }: FileResult): string {
  const lines = output.split('\n').map((line) => line.trim())
  const failure = lines.findIndex((line) => line.startsWith('FAIL '))
  const message = lines.slice(failure < 0 ? 0 : failure).filter((line) => line !== '')
  return message.slice(0, 2).join(' ').slice(0, 160)
}

async function judge(tree: TreeCopy, bug: PlantedBug, setting: Setting): Promise<Verdict> {
  const started = performance.now()
  const caughtBy = await hunt(tree, bug, setting)
  return { bug, caughtBy, took: performance.now() - started }
}

function printVerdict({ bug, caughtBy, took }: Verdict): void {
  const what = caughtBy ? `caught by ${caughtBy.proof}` : 'NOT CAUGHT'
  console.log(`${caughtBy ? 'ok  ' : 'FAIL'}  ${bug.name}: ${what}  ${seconds(took)}`)
  if (caughtBy) console.log(`      ${caughtBy.file}: ${caughtBy.message}`)
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', multiple: true, default: [''] },
      'sqlite-only': { type: 'boolean', default: false },
    },
  })
  const { 'sqlite-only': sqliteOnly } = values
  const interruption = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interruption.abort())
  const tree = await copyTree(ROOT)
  const place = await openPlace(tree.root, { inMemory: true, sqliteOnly })
  const verdicts: Verdict[] = []
  const chosen = PLANTED_BUGS.filter(({ name, file }) =>
    values.only.some((text) => `${name} ${file}`.includes(text)),
  )
  try {
    for (const bug of chosen) {
      if (bug.needsPostgres && sqliteOnly) {
        console.log(`skip  ${bug.name}: shows on PostgreSQL only`)
        continue
      }
      const env = { ...place.env, TEST_UNSHRUNK: '1' }
      verdicts.push(await judge(tree, bug, { root: tree.root, env, signal: interruption.signal }))
      printVerdict(verdicts.at(-1) as Verdict)
    }
  } finally {
    await place.close()
    await tree.remove()
  }
  const caught = verdicts.filter(({ caughtBy }) => caughtBy !== null)
  const byProof = Map.groupBy(caught, ({ caughtBy }) => caughtBy?.proof)
  for (const [proof, of] of byProof) console.log(`${proof}: ${of.length}`)
  console.log(`size: ${caught.length} of ${verdicts.length} planted bugs caught`)
  return chosen.length > 0 && caught.length === verdicts.length
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 2
}
