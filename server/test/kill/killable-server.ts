import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { TESTBED_KEY } from '../testkit/testbed.ts'
import type { Order } from './kill-at.ts'
import type { Target } from './points.ts'

const PROGRAM = fileURLToPath(new URL('../../../cli/affiliate.mjs', import.meta.url))
const PRELOAD = new URL('./kill-at.ts', import.meta.url).href

export interface KillableOptions {
  environment: Record<string, string>
  /** How far its clock stands before the machine's, ms. */
  clockAhead: () => number
  /** Called between a death and the next start. */
  onDeath: () => Promise<void>
}

/** The real server in its own process; restarted when it is found dead. */
export class KillableServer {
  readonly #options: KillableOptions
  #child: ChildProcess | null = null
  #exit: Promise<unknown> = Promise.resolve()
  #starting: Promise<string> | null = null
  #url = ''
  /** The end of what it has written to stderr. */
  complaints = ''
  deaths = 0
  /** By its own clock, epoch ms. */
  startedAt = 0

  constructor(options: KillableOptions) {
    this.#options = options
  }

  get isAlive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Where it listens, or listened last. */
  get url(): string {
    return this.#url
  }

  get pid(): number {
    return this.#child?.pid ?? 0
  }

  /** Its address, when it listens; starts it when there is none, armed with `target`. */
  async alive(target: Target | null = null): Promise<string> {
    if (!this.#starting) {
      if (this.isAlive) return this.#url
      this.#starting = this.#start(target).finally(() => {
        this.#starting = null
      })
    }
    this.#url = await this.#starting
    return this.#url
  }

  /** Ends it the hard way. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL')
    await this.#exit
  }

  /** Ends it politely; fails when it does not end well. */
  async stop(): Promise<void> {
    const child = this.#child
    if (!child || !this.isAlive) return
    child.kill('SIGTERM')
    await this.#exit
    if (child.exitCode !== 0) throw new Error(`the server ended with ${child.exitCode}: ${this.complaints}`)
    this.#child = null
  }

  /** Resolves when it has ended; false when it has not within `ms`. */
  async endsWithin(ms: number): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    await Promise.race([this.#exit, late])
    clearTimeout(timer)
    return !this.isAlive
  }

  /** Gives an order and waits until it is carried out; false when the server dies over it. */
  async obey(order: Order): Promise<boolean> {
    const child = this.#child
    if (!child?.connected) return false
    const answer = once(child, 'message')
    child.send(order, () => undefined)
    const said = await Promise.race([answer, this.#exit.then(() => null)])
    answer.catch(() => undefined)
    if (said === null) return false
    if (said[0] !== 'done') throw new Error(`the server could not obey: ${said[0]}`)
    return true
  }

  async #start(target: Target | null): Promise<string> {
    if (this.#child) {
      await this.#exit
      if (this.#child.signalCode !== 'SIGKILL') {
        throw new Error(`the server ended by itself (${this.#child.exitCode}): ${this.complaints}`)
      }
      this.deaths += 1
      this.#child = null
      await this.#options.onDeath()
    }
    this.startedAt = Date.now() + this.#options.clockAhead()
    const child = spawn(process.execPath, ['--import', PRELOAD, PROGRAM, 'serve', '--json'], {
      env: {
        ...this.#options.environment,
        CLOCK_AHEAD: String(this.#options.clockAhead()),
        ...(target && { KILL_AT: JSON.stringify(target) }),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child = child
    this.#exit = once(child, 'exit')
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.complaints = (this.complaints + text).slice(-4000)
    })
    return addressOf(child, this.#exit)
  }
}

/** The environment of a server on loopback over this database, without limits. */
export function killableEnvironment({
  url,
  folder,
}: {
  url: string
  folder: string
}): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env
  return {
    PATH,
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
    HOST: '127.0.0.1',
    DATABASE_URL: url,
    DATA_DIR: folder,
    APP_KEY: TESTBED_KEY.toString('base64'),
    RATE_LIMIT_AUTH: '0',
    RATE_LIMIT_PUBLIC: '0',
    RATE_LIMIT_USER: '0',
  }
}

/** Rejects when the server dies before it listens. */
function addressOf(child: ChildProcess, exit: Promise<unknown>): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.endsWith('}\n')) resolve((JSON.parse(said) as { url: string }).url)
    })
    exit.then(() => reject(new Error('the server ended before it listened')), reject)
  })
}
