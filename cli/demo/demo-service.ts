import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { z } from 'zod'
import { jsonOrNull } from '../../shared/json.ts'

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
      if (stdout !== '') return resolve(JSON.parse(stdout))
      const reason = reasonIn(stderr || error?.message || '')
      reject(new DemoStopped(`affiliate ${args.join(' ')} failed: ${reason}`))
    })
  })
}

/** The detail of a problem object, or the last line. */
function reasonIn(output: string): string {
  const last = output.trim().split('\n').at(-1) ?? ''
  const problem = jsonOrNull(last) as { detail?: unknown } | null
  return String(problem?.detail ?? last.slice(0, 500))
}

/** What `affiliate serve --json` prints once it listens; no sandbox with another processor. */
const announcement = z.object({ url: z.url(), sandbox_url: z.url().nullable() })

export type DemoService = Awaited<ReturnType<typeof startDemoService>>

/**
 * The real service in its own process, its commands, and its API as any client calls it. Resolves once it listens, on `port` (0 for any).
 * With `detached` it can outlive this process. All of it throws `DemoStopped`.
 */
export async function startDemoService(
  setting: DemoSetting,
  { port, detached, onStart }: { port: number; detached: boolean; onStart?: (pid: number) => void },
) {
  const { folder, environment, signal } = setting
  // Files, not pipes: a kept service must not depend on who started it.
  const [outFile, logFile] = [join(folder, 'server.out'), join(folder, 'server.log')]
  const [out, log] = [openSync(outFile, 'w'), openSync(logFile, 'a')]
  const child = spawn(process.execPath, [MAIN, 'serve', '--json'], {
    cwd: folder,
    env: { ...environment, PORT: String(port), DRAIN_SECONDS: '0' },
    stdio: ['ignore', out, log],
    detached,
  })
  child.on('error', () => undefined)
  closeSync(out)
  closeSync(log)
  const { pid = 0 } = child
  if (pid !== 0) onStart?.(pid)

  let isListening = false
  /** Asks again until `probe` finds something. */
  const until = async <Found>(what: string, probe: () => Promise<Found | null | undefined>) => {
    for (const deadline = performance.now() + TIMEOUT_MS; ; ) {
      if (hasEnded(child)) {
        const reason = reasonIn(readFileSync(logFile, 'utf8'))
        throw new DemoStopped(isListening ? 'the service has ended' : `the service does not start: ${reason}`)
      }
      const found = await probe()
      if (found !== null && found !== undefined) return found
      if (performance.now() > deadline) throw new DemoStopped(`waited without success for ${what}`)
      await pause(POLL_MS, undefined, { signal })
    }
  }
  const stop = async () => {
    if (hasEnded(child)) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await ended
    clearTimeout(timer)
  }
  try {
    const text = await until('the service to listen', async () => {
      const written = readFileSync(outFile, 'utf8')
      return written.endsWith('}\n') ? written : null
    })
    const { url, sandbox_url: sandboxUrl } = announcement.parse(JSON.parse(text))
    isListening = true
    return {
      folder,
      url,
      sandboxUrl,
      databaseUrl: environment.DATABASE_URL ?? '',
      pid,
      /** Runs an `affiliate` command, and returns its document. */
      command: <Document>(...args: string[]) => runCommand(setting, args) as Promise<Document>,
      /** A JSON call; the answer must be 2xx and fit the wire schema. */
      async call<Schema extends z.ZodType>(
        method: 'GET' | 'POST' | 'PATCH',
        path: string,
        schema: Schema,
        { token, body }: { token?: string; body?: unknown } = {},
      ): Promise<z.output<Schema>> {
        return schema.parse(await send(`${url}${path}`, method, token, body))
      },
      until,
      stop,
      /** Lets it outlive this process. */
      release: () => child.unref(),
    }
  } catch (error) {
    await stop()
    throw error
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

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined
}
