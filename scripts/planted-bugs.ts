import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { LONG_FORMS, type LongForm } from './proof/long-forms.ts'
import { copyTree, type TreeCopy } from './proof/plant.ts'
import { PLANTED_BUGS, type PlantedBug } from './proof/planted-bugs.ts'
import { findTests } from './testing/find-tests.ts'
import { givenPostgres, startPostgres } from './testing/postgres.ts'
import { seconds } from './testing/report.ts'
import { type FileResult, runFile } from './testing/run-file.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

const USAGE = `npm run proof:bugs -- [--only TEXT] [--sqlite-only]

  Plants each bug, one at a time, in a copy of the tree, and runs the short forms of the proofs until one catches it,
  beginning with the one that should. Ends with exit code 1 when a bug escapes them all.`

interface Verdict {
  bug: PlantedBug
  /** The proof that caught it and its first complaint; `null`: it escaped. */
  caughtBy: { proof: string; file: string; complaint: string } | null
  took: number
}

/** The proof that should catch a bug first, then the others. */
function inOrder(bug: PlantedBug): LongForm[] {
  const first = LONG_FORMS.filter(({ name }) => name === bug.expectedIn)
  if (first.length !== 1) throw new Error(`"${bug.name}" expects ${bug.expectedIn}, which is no proof`)
  return [...first, ...LONG_FORMS.filter(({ name }) => name !== bug.expectedIn)]
}

async function hunt(
  bug: PlantedBug,
  root: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Verdict['caughtBy']> {
  for (const proof of inOrder(bug)) {
    for (const file of await findTests(root, proof.files)) {
      if (signal.aborted) throw new Error('interrupted')
      const result = await runFile(file, { root, env, signal })
      if (result.failed > 0) return { proof: proof.name, file: file.path, complaint: complaintOf(result) }
    }
  }
  return null
}

/** The first line that says what failed. */
function complaintOf({ output, problem }: FileResult): string {
  const lines = output.split('\n').map((line) => line.trim())
  const failure = lines.findIndex((line) => line.startsWith('FAIL '))
  const said = lines.slice(failure < 0 ? 0 : failure).filter((line) => line !== '')
  return (problem ?? said.slice(0, 2).join(' ')).slice(0, 160)
}

async function judge(tree: TreeCopy, bug: PlantedBug, env: NodeJS.ProcessEnv, signal: AbortSignal) {
  const started = performance.now()
  const caughtBy = await tree.withBug(bug, () => hunt(bug, tree.root, env, signal))
  return { bug, caughtBy, took: performance.now() - started }
}

function printVerdict({ bug, caughtBy, took }: Verdict): void {
  const what = caughtBy ? `caught by ${caughtBy.proof}` : 'ESCAPED every proof'
  console.log(`${caughtBy ? 'ok  ' : 'FAIL'}  ${bug.name}: ${what}  ${seconds(took)}`)
  if (caughtBy) console.log(`      ${caughtBy.file}: ${caughtBy.complaint}`)
}

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: { only: { type: 'string', default: '' }, 'sqlite-only': { type: 'boolean', default: false } },
  })
  const interruption = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interruption.abort())
  const given = process.env.TEST_POSTGRES_URL
  const postgres = values['sqlite-only'] ? null : given ? givenPostgres(given) : startPostgres()
  const tree = await copyTree(ROOT)
  const verdicts: Verdict[] = []
  try {
    const env = {
      ...process.env,
      ...(postgres ? { TEST_POSTGRES_URL: await postgres.url } : { TEST_SQLITE_ONLY: '1' }),
    }
    for (const bug of PLANTED_BUGS.filter(({ name }) => name.includes(values.only))) {
      verdicts.push(await judge(tree, bug, env, interruption.signal))
      printVerdict(verdicts.at(-1) as Verdict)
    }
  } finally {
    await postgres?.stop()
    await tree.remove()
  }
  const caught = verdicts.filter(({ caughtBy }) => caughtBy !== null)
  const byProof = Map.groupBy(caught, ({ caughtBy }) => caughtBy?.proof)
  for (const [proof, of] of byProof) console.log(`${proof}: ${of.length}`)
  console.log(`size: ${caught.length} of ${verdicts.length} planted bugs caught`)
  return verdicts.length > 0 && caught.length === verdicts.length
}

try {
  if (!(await main())) process.exitCode = 1
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 2
}
