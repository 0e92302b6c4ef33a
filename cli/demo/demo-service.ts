import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { z } from 'zod'

const MAIN = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))
const POLL_MS = 40
/** Far more than anything in the story takes, on a slow machine too. */
const TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 10_000

/** The story cannot go on. The message says why, for people. */
export class DemoStopped extends Error {}

/** Where the service and its commands run, with the same settings on every machine. */
export interface DemoSetting {
  folder: string
  environment: Record<string, string>
  signal: AbortSignal
}

/** The names under which a host's own environment reaches the service; settings of the service do not. */
const PASSED_ON = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'NODE_V8_COVERAGE']

/** The variables with these names that this process has. */
export function ownSettings(names: readonly string[]): Record<string, string> {
  const { env } = process
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/** Without the settings of the processor. */
export function demoSetting(folder: string, signal: AbortSignal): DemoSetting {
  const environment = {
    ...ownSettings(PASSED_ON),
    HOST: '127.0.0.1',
    DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}`,
    // The story runs both jobs itself, with the operator's commands.
    SCHEDULE_BILLING: 'off',
    SCHEDULE_PAYOUTS: 'off',
    LOG_LEVEL: 'warn',
    NO_COLOR: '1',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE || join(folder, 'compile-cache'),
  }
  return { folder, environment, signal }
}

/** Runs an `affiliate` command with `--json` and returns its document. Throws `DemoStopped` unless it prints one. */
export function runCommand({ folder, environment, signal }: DemoSetting, args: readonly string[]) {
  const options = { cwd: folder, env: environment, signal, timeout: TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 }
  return new Promise<unknown>((resolve, reject) => {
    execFile(process.execPath, [MAIN, ...args, '--json', '--yes'], options, (error, stdout, stderr) => {
      // A command that finds something wrong prints it and ends with 1; the checks judge it.
      if (stdout !== '') resolve(JSON.parse(stdout))
      else
        reject(
          new DemoStopped(`affiliate ${args.join(' ')} failed: ${reasonIn(stderr || error?.message || '')}`),
        )
    })
  })
}

/** The detail of a problem object, or the last line. */
function reasonIn(output: string): string {
  const last = output.trim().split('\n').at(-1) ?? ''
  try {
    return String((JSON.parse(last) as { detail?: unknown }).detail)
  } catch {
    return last.slice(0, 500)
  }
}

/** What `affiliate serve --json` prints once it listens. */
const announcement = z.object({ url: z.url(), sandbox_url: z.url().nullable() })

/** The real service in its own process, its commands, and its API as any client calls it. */
export class DemoService {
  readonly setting: DemoSetting
  readonly url: string
  /** `null` with another processor than the sandbox. */
  readonly sandboxUrl: string | null
  readonly #child: ChildProcess

  private constructor(setting: DemoSetting, child: ChildProcess, listening: z.output<typeof announcement>) {
    this.setting = setting
    this.#child = child
    this.url = listening.url
    this.sandboxUrl = listening.sandbox_url
  }

  /** Resolves once it listens, on `port` (0 for any). With `detached` it can outlive this process. Throws `DemoStopped`. */
  static async start(
    setting: DemoSetting,
    options: { port: number; detached: boolean; onStart?: ((pid: number) => void) | undefined },
  ): Promise<DemoService> {
    const { folder, environment, signal } = setting
    // Files, not pipes: a kept service must not depend on who started it.
    const outFile = join(folder, 'server.out')
    const logFile = join(folder, 'server.log')
    const out = openSync(outFile, 'w')
    const log = openSync(logFile, 'a')
    const child = spawn(process.execPath, [MAIN, 'serve', '--json'], {
      cwd: folder,
      env: { ...environment, PORT: String(options.port), DRAIN_SECONDS: '0' },
      stdio: ['ignore', out, log],
      detached: options.detached,
    })
    child.on('error', () => undefined)
    closeSync(out)
    closeSync(log)
    if (child.pid !== undefined) options.onStart?.(child.pid)
    try {
      const text = await poll(signal, 'the service to listen', async () => {
        if (hasEnded(child))
          throw new DemoStopped(`the service does not start: ${reasonIn(readFileSync(logFile, 'utf8'))}`)
        const written = readFileSync(outFile, 'utf8')
        return written.endsWith('}\n') ? written : null
      })
      return new DemoService(setting, child, announcement.parse(JSON.parse(text)))
    } catch (error) {
      await end(child)
      throw error
    }
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Runs an `affiliate` command, and returns its document. */
  command<Document>(...args: string[]): Promise<Document> {
    return runCommand(this.setting, args) as Promise<Document>
  }

  /** A JSON call; the answer must be 2xx and fit the wire schema. Throws `DemoStopped`. */
  async call<Schema extends z.ZodType>(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    schema: Schema,
    { token, body }: { token?: string; body?: unknown } = {},
  ): Promise<z.output<Schema>> {
    const document = await send(`${this.url}${path}`, method, token, body)
    return schema.parse(document)
  }

  /** Asks again until `probe` finds something. Throws `DemoStopped` when that takes too long. */
  until<Found>(what: string, probe: () => Promise<Found | null | undefined>): Promise<Found> {
    return poll(this.setting.signal, what, () => {
      if (hasEnded(this.#child)) throw new DemoStopped('the service has ended')
      return probe()
    })
  }

  stop(): Promise<void> {
    return end(this.#child)
  }

  /** Lets it outlive this process. */
  release(): void {
    this.#child.unref()
  }
}

/** One JSON request. Throws `DemoStopped` without an answer or with another than 2xx. */
export async function send(
  url: string,
  method: 'GET' | 'POST' | 'PATCH' | 'PUT',
  token?: string,
  body?: unknown,
) {
  const answer = await request(url, {
    method,
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch((error: Error) => {
    throw new DemoStopped(`${url} does not answer: ${error.message}`)
  })
  const text = await answer.body.text()
  if (answer.statusCode >= 300)
    throw new DemoStopped(`${method} ${url}: ${answer.statusCode} ${reasonIn(text)}`)
  return text === '' ? null : (JSON.parse(text) as unknown)
}

async function poll<Found>(
  signal: AbortSignal,
  what: string,
  probe: () => Promise<Found | null | undefined>,
): Promise<Found> {
  for (const deadline = performance.now() + TIMEOUT_MS; ; ) {
    const found = await probe()
    if (found !== null && found !== undefined) return found
    if (performance.now() > deadline) throw new DemoStopped(`waited without success for ${what}`)
    await pause(POLL_MS, undefined, { signal })
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(timer)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined
}
