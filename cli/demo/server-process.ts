import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { COMMAND_LINE, reasonIn } from './command-line.ts'
import { DemoStopped } from './demo-stopped.ts'

/** What `affiliate serve --json` prints once it listens. */
const announcement = z.object({ url: z.url(), sandbox_url: z.url().nullable() })

export interface Listening {
  url: string
  /** `null` with another processor than the sandbox. */
  sandboxUrl: string | null
}

export interface ServerOptions {
  /** Where it runs and writes its output. */
  folder: string
  /** Its whole environment; PORT is set here. */
  environment: Record<string, string>
  /** Where it listens; 0 for any free port. */
  port: number
  /** In a process group of its own, so that it outlives the demo. */
  detached: boolean
  /** Aborted when the demo is to end: a server that ends from then on is not started again. */
  signal: AbortSignal
  onStart?: ((pid: number) => void) | undefined
  /** Called when the server ended unexpectedly, with how; it is being started again. */
  onDeath?: ((how: string) => void) | undefined
}

const ADDRESS_WITHIN_MS = 30_000
const POLL_MS = 15
/** Where one has listened before, another may be in the way for a moment; a first start has no such excuse. */
const FAILED_STARTS = { first: 1, again: 3 }
const STOP_WITHIN_MS = 5000

/**
 * The real server in a process of its own. When it is killed it is started again on the same port and over the same data,
 * like by a service manager.
 */
export class ServerProcess {
  readonly #options: ServerOptions
  #child: ChildProcess | null = null
  #listening: Promise<Listening>
  #address: Listening | null = null
  #ending = false
  /** How often it was started again. */
  restarts = 0

  constructor(options: ServerOptions) {
    this.#options = options
    options.signal.addEventListener('abort', () => {
      this.#ending = true
    })
    this.#listening = this.#start()
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Where it listens, or listened last: after a death it comes back there. */
  get url(): string {
    if (!this.#address) throw new Error('the server has not listened yet')
    return this.#address.url
  }

  /** Resolves while it listens. Rejects when it cannot be started. */
  ready(): Promise<Listening> {
    return this.#listening
  }

  /** Ends it, politely first. */
  async stop(): Promise<void> {
    this.#ending = true
    const child = this.#child
    if (!child || hasEnded(child)) return
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    const impatience = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
    await ended
    clearTimeout(impatience)
  }

  /** Lets it go on alone: it outlives this process from here on. */
  release(): void {
    this.#ending = true
    this.#child?.unref()
  }

  #start(): Promise<Listening> {
    const listening = this.#startUntilItListens()
    // A waiting caller gets the error; without one it is not unhandled.
    listening.catch(() => undefined)
    return listening
  }

  async #startUntilItListens(): Promise<Listening> {
    for (let failed = 0; !this.#ending; ) {
      const child = this.#spawn()
      const address = await this.#readAddress(child)
      if (address) {
        this.#address = address
        if (hasEnded(child)) this.#died(child)
        else child.once('exit', () => this.#died(child))
        return address
      }
      if (child.signalCode === null) failed += 1
      if (failed === (this.#address ? FAILED_STARTS.again : FAILED_STARTS.first))
        throw new DemoStopped(`the server does not start: ${this.#lastWords()}`)
      if (!this.#ending) this.#noteDeath(child)
    }
    throw new DemoStopped('the server was stopped')
  }

  #spawn(): ChildProcess {
    const { folder, environment, detached, onStart } = this.#options
    const port = this.#address ? new URL(this.#address.url).port : String(this.#options.port)
    // Files, not pipes: a kept server must not depend on who started it.
    const out = openSync(this.#outFile(), 'w')
    const errors = openSync(join(folder, 'server.log'), 'a')
    const [command, ...rest] = [...COMMAND_LINE, 'serve', '--json']
    const child = spawn(command, rest, {
      cwd: folder,
      env: { ...environment, PORT: port, DRAIN_SECONDS: '0' },
      stdio: ['ignore', out, errors],
      detached,
    })
    // Without a process there is no pid, which counts as ended.
    child.on('error', () => undefined)
    closeSync(out)
    closeSync(errors)
    this.#child = child
    if (child.pid !== undefined) onStart?.(child.pid)
    return child
  }

  /** `null` when it ended before it said where it listens. */
  async #readAddress(child: ChildProcess): Promise<Listening | null> {
    const deadline = performance.now() + ADDRESS_WITHIN_MS
    while (!hasEnded(child)) {
      const document = wholeDocument(readFileSync(this.#outFile(), 'utf8'))
      if (document !== null) {
        const { url, sandbox_url } = announcement.parse(document)
        return { url, sandboxUrl: sandbox_url }
      }
      if (performance.now() > deadline) throw new DemoStopped('the server did not say where it listens')
      await pause(POLL_MS)
    }
    return null
  }

  #died(child: ChildProcess): void {
    if (this.#ending) return
    this.#noteDeath(child)
    this.#listening = this.#start()
  }

  #noteDeath(child: ChildProcess): void {
    this.restarts += 1
    this.#options.onDeath?.(child.signalCode ?? `exit code ${child.exitCode}`)
  }

  #lastWords(): string {
    return reasonIn(readFileSync(join(this.#options.folder, 'server.log'), 'utf8'))
  }

  #outFile(): string {
    return join(this.#options.folder, 'server.out')
  }
}

/** `null` while it is still being written. */
function wholeDocument(text: string): unknown {
  if (!text.endsWith('}\n')) return null
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null || child.pid === undefined
}
