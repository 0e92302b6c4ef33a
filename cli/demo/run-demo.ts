import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Closing, WireFigures } from './closing.steps.ts'
import { Demo, demoEnvironment } from './demo.ts'
import { type DemoProcessorName, openDemoProcessor } from './demo-processor.ts'
import { headingLine, type Paint, stepLines } from './layout.ts'
import { makeSecrets, type People } from './people.steps.ts'
import { SHOP_DOMAIN } from './scenario.ts'
import { ServerProcess } from './server-process.ts'
import { NoAnswer, ServiceClient } from './service-client.ts'
import { type Check, StepReport } from './step-report.ts'
import { STEPS, type StepName, tellStory } from './steps.ts'

export interface DemoOptions {
  print(line: string): void
  paint: Paint
  /** `sandbox` unless given. */
  processor?: DemoProcessorName
  /** Keeps server and folder after the last step. */
  keep: boolean
  /** Aborted to end the demo: it then cleans up and throws. */
  signal: AbortSignal
  /** Hears of each server process that was started. */
  onServer?: (pid: number) => void
  /** Hears of each step that is done, and is waited for. */
  onStep?: (name: StepName) => void | Promise<void>
}

/** What `--keep` leaves running, and everything needed to use and to end it. */
export interface Kept {
  url: string
  /** `null` with another processor than the sandbox. */
  sandbox_url: string | null
  processor_url: string
  pid: number
  folder: string
  database_url: string
  accounts: { role: string; name: string; email: string; password: string; token: string }[]
  store: { shop_domain: string; webhook_secret: string }
}

export interface DemoResult {
  /** Whether everything came out as the fixtures' manifest and the arithmetic say, and the books hold. */
  ok: boolean
  took_ms: number
  /** How often the server died and was started again. */
  restarts: number
  steps: { name: StepName; title: string; rows: string[][] }[]
  checks: Check[]
  figures: WireFigures
  invariants: Closing['invariants']
  kept: Kept | null
}

/** How long to leave a server that gave no answer before it is asked again. */
const BEFORE_REPEATING_MS = 30

/**
 * Tells the whole story, from an empty database to a paid payout, against the real server in a process of its own.
 *
 * The server may be killed at any moment: it is started again, and the step under way is repeated. Each step is written
 * so that it can be: it finds what its unanswered try has made, or says exactly the same once more.
 * Throws when the story cannot go on; then, and unless `keep` is given, nothing is left behind.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const started = performance.now()
  options.print(options.paint('dim', 'One order, all the way to a paid payout; amounts in rupees.\n'))
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-demo-'))
  let demo: Demo | null = null
  let kept: Kept | null = null
  try {
    demo = await openDemo(folder, options)
    const teller = new Teller(demo, options)
    const secrets = makeSecrets()
    const { people, closing } = await tellStory(demo, teller, secrets)
    const checks = teller.steps.flatMap((step) => step.checks)
    const result: DemoResult = {
      ok: checks.every((check) => check.ok),
      took_ms: Math.round(performance.now() - started),
      restarts: demo.server.restarts,
      steps: teller.steps.map(({ name, title, rows }) => ({ name, title, rows })),
      checks,
      figures: closing.figures,
      invariants: closing.invariants,
      kept: options.keep ? await whatIsKept(demo, people, secrets.webhookSecret) : null,
    }
    kept = result.kept
    return result
  } finally {
    await demo?.client.close()
    if (kept) demo?.server.release()
    else {
      await demo?.server.stop()
      rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** Opens the processor and starts the server. */
async function openDemo(folder: string, options: DemoOptions): Promise<Demo> {
  const { keep, signal } = options
  const common = demoEnvironment(folder)
  const processor = await openDemoProcessor(options.processor ?? 'sandbox', {
    folder,
    environment: common,
    signal,
  })
  const environment = { ...common, ...processor.settings }
  const note = (text: string) => options.print(options.paint('yellow', `     ${text}`))
  const server = new ServerProcess({
    folder,
    environment,
    port: processor.port,
    detached: keep,
    signal,
    onStart: options.onServer,
    onDeath: (how) => note(`the server died (${how}); it is started again`),
  })
  const client = new ServiceClient(() => server.url)
  return new Demo({ folder, environment, processor, server, client, signal, note })
}

interface ToldStep {
  name: StepName
  title: string
  rows: string[][]
  checks: Check[]
}

/** Runs and prints the steps, one after the other, each as often as it takes. */
class Teller {
  readonly steps: ToldStep[] = []
  readonly #demo: Demo
  readonly #options: DemoOptions

  constructor(demo: Demo, options: DemoOptions) {
    this.#demo = demo
    this.#options = options
  }

  /** Runs one step until every request of it has been answered, prints what it reports, and answers its result. */
  step = async <Result>(name: StepName, work: (report: StepReport) => Promise<Result>): Promise<Result> => {
    const { print, paint, onStep } = this.#options
    const title = STEPS[name]
    print(headingLine(this.steps.length + 1, title, paint))
    const { result, report } = await this.#untilAnswered(work)
    for (const line of stepLines(report, paint)) print(line)
    this.steps.push({ name, title, rows: report.rows, checks: report.checks })
    await onStep?.(name)
    return result
  }

  async #untilAnswered<Result>(work: (report: StepReport) => Promise<Result>) {
    for (;;) {
      const { server, signal } = this.#demo
      signal.throwIfAborted()
      await server.ready()
      const report = new StepReport()
      try {
        return { report, result: await work(report) }
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof NoAnswer)) throw error
        // The news of a death comes a moment after the broken connection.
        await pause(BEFORE_REPEATING_MS)
      }
    }
  }
}

async function whatIsKept(demo: Demo, people: People, webhookSecret: string): Promise<Kept> {
  const listening = await demo.server.ready()
  const [processorUrl] = demo.processor.describe(listening)
  const { merchant, creator, otherCreator } = people
  return {
    url: listening.url,
    sandbox_url: listening.sandboxUrl,
    processor_url: processorUrl,
    pid: demo.server.pid,
    folder: demo.folder,
    database_url: demo.environment.DATABASE_URL ?? '',
    accounts: [
      { role: 'merchant', ...merchant },
      { role: 'creator', ...creator },
      { role: 'creator', ...otherCreator },
    ].map(({ role, name, email, password, token }) => ({ role, name, email, password, token })),
    store: { shop_domain: SHOP_DOMAIN, webhook_secret: webhookSecret },
  }
}
