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

interface Complaint {
  proof: string
  file: string
  said: string
}

interface Verdict {
  bug: PlantedBug
  /** The first complaint; `null`: it escaped. */
  caughtBy: Complaint | null
  took: number
}

/** Those that bugs are planted for; they are short enough to be asked about each. */
const HUNTERS = LONG_FORMS.filter(({ name }) => PLANTED_BUGS.some(({ expectedIn }) => expectedIn === name))

/** The proof that should catch a bug first, then the others. */
function inOrder(bug: PlantedBug): LongForm[] {
  return HUNTERS.toSorted((a, b) => Number(b.name === bug.expectedIn) - Number(a.name === bug.expectedIn))
}

interface Setting {
  root: string
  env: NodeJS.ProcessEnv
  signal: AbortSignal
}

/** Each file of a proof until one complains by an assertion: a crash or a time limit may have other causes. */
async function complaintOf(proof: LongForm, setting: Setting): Promise<Complaint | null> {
  for (const file of await findTests(setting.root, proof.files)) {
    if (setting.signal.aborted) throw new Error('interrupted')
    const result = await runFile(file, setting)
    if (result.failed > (result.problem ? 1 : 0))
      return { proof: proof.name, file: file.path, said: saidBy(result) }
    if (result.problem) console.log(`      ${file.path} ${result.problem}: not counted`)
  }
  return null
}

/** Without a bug no proof may complain, or its complaints say nothing. */
async function holdWithoutBugs(setting: Setting): Promise<void> {
  for (const proof of HUNTERS) {
    const complaint = await complaintOf(proof, setting)
    if (complaint)
      throw new Error(`${proof.name} fails without any bug: ${complaint.file}: ${complaint.said}`)
    console.log(`ok    ${proof.name} holds without a bug`)
  }
}

async function hunt(bug: PlantedBug, setting: Setting): Promise<Complaint | null> {
  for (const proof of inOrder(bug)) {
    const complaint = await complaintOf(proof, setting)
    if (complaint) return complaint
  }
  return null
}

/** The first line that says what failed. */
function saidBy({ output }: FileResult): string {
  const lines = output.split('\n').map((line) => line.trim())
  const failure = lines.findIndex((line) => line.startsWith('FAIL '))
  const said = lines.slice(failure < 0 ? 0 : failure).filter((line) => line !== '')
  return said.slice(0, 2).join(' ').slice(0, 160)
}

async function judge(tree: TreeCopy, bug: PlantedBug, setting: Setting): Promise<Verdict> {
  const started = performance.now()
  const caughtBy = await tree.withBug(bug, () => hunt(bug, setting))
  return { bug, caughtBy, took: performance.now() - started }
}

function printVerdict({ bug, caughtBy, took }: Verdict): void {
  const what = caughtBy ? `caught by ${caughtBy.proof}` : 'ESCAPED every proof'
  console.log(`${caughtBy ? 'ok  ' : 'FAIL'}  ${bug.name}: ${what}  ${seconds(took)}`)
  if (caughtBy) console.log(`      ${caughtBy.file}: ${caughtBy.said}`)
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
    const setting = { root: tree.root, env, signal: interruption.signal }
    await holdWithoutBugs(setting)
    for (const bug of PLANTED_BUGS.filter(({ name }) => name.includes(values.only))) {
      verdicts.push(await judge(tree, bug, setting))
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
