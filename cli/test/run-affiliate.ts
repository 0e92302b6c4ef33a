import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { eventually } from '../../server/test/testkit/eventually.ts'

export const ENTRY = fileURLToPath(new URL('../affiliate.mjs', import.meta.url))

/** The key of the testbed's vault, for commands that read what it sealed. */
export const APP_KEY = Buffer.alloc(32, 7).toString('base64')

/** Settings that production accepts, beside DATABASE_URL. */
export const PRODUCTION = {
  NODE_ENV: 'production',
  PUBLIC_BASE_URL: 'https://market.test',
  APP_KEY,
  PROCESSOR: 'http',
  PROCESSOR_URL: 'https://processor.test',
  PROCESSOR_API_KEY: 'a key',
  PROCESSOR_WEBHOOK_SECRETS: 'whsec_AAAA',
}

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

interface StartOptions {
  /** Settings; of the test's own environment only PATH and caches go along. */
  environment?: Record<string, string>
  folder?: string
  /** Another program than `affiliate`. */
  entry?: string
}

export interface RunningAffiliate {
  child: ChildProcessWithoutNullStreams
  /** What it has printed so far. */
  printed: { stdout: string; stderr: string }
  /** As a shell tells it: a process that Ctrl-C has ended counts as 130. */
  ended: Promise<Ended>
  /** Resolves when `found` says so, or the command has ended. */
  until(found: () => boolean | Promise<boolean>): Promise<void>
  /** Sends what Ctrl-C sends, and waits for the end. */
  interrupt(): Promise<Ended>
}

const SIGINT_STATUS = 130

/** Starts `affiliate` in a process of its own, as a script would: no terminal on any side. */
export function startAffiliate(args: readonly string[], options: StartOptions = {}): RunningAffiliate {
  const child = spawn(process.execPath, [options.entry ?? ENTRY, ...args], {
    cwd: options.folder,
    env: environmentOf(options.environment),
  })
  const printed = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      printed[stream] += text
    })
  }
  // A command that needs no input may have ended before it is written.
  child.stdin.on('error', () => undefined)
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) =>
      resolve({ code: signal === 'SIGINT' ? SIGINT_STATUS : code, ...printed }),
    )
  })
  return {
    child,
    printed,
    ended,
    async until(found) {
      await eventually(async () => child.exitCode !== null || child.signalCode !== null || (await found()))
    },
    interrupt() {
      child.kill('SIGINT')
      return ended
    },
  }
}

/** The same once it has printed its first line: the JSON document of `serve --json`. */
export async function startServing(
  args: readonly string[],
  options: StartOptions = {},
  // biome-ignore lint/suspicious/noExplicitAny: the document of any command
): Promise<RunningAffiliate & { document: any }> {
  const running = startAffiliate(args, options)
  await running.until(() => running.printed.stdout.includes('\n'))
  const { stdout, stderr } = running.printed
  if (stdout === '') throw new Error(`it did not start: ${stderr}`)
  return { ...running, document: JSON.parse(stdout) }
}

/** Runs `affiliate` in a process of its own to its end. */
export function runAffiliate(
  args: readonly string[],
  { input = '', ...options }: StartOptions & { input?: string } = {},
): Promise<Ended> {
  const { child, ended } = startAffiliate(args, options)
  child.stdin.end(input)
  return ended
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export function environmentOf(settings: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', NODE_V8_COVERAGE, NODE_COMPILE_CACHE } = process.env
  return {
    ...{ PATH, DRAIN_SECONDS: '0' },
    ...(NODE_V8_COVERAGE && { NODE_V8_COVERAGE }),
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
    ...settings,
  }
}
