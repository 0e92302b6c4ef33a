import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../scripts/testing/postgres-server.ts'
import type { Order, ScheduledJob } from '../kill/kill-at.ts'

const PROGRAM = fileURLToPath(new URL('../../../cli/affiliate.mjs', import.meta.url))
/** It takes the order to run a scheduled job, and ends the process with this one. */
const PRELOAD = new URL('../kill/kill-at.ts', import.meta.url).href
const LOG_CHARACTERS = 4000

export type Role = 'web' | 'worker' | 'scheduler'

/** One process of the real service with one role, on a port that it keeps over restarts. */
export class ServiceProcess {
  readonly name: string
  readonly role: Role
  readonly url: string
  readonly #environment: Record<string, string>
  #child: ChildProcess | null = null
  /** What it has logged of errors, without the requests that it refused. */
  log = ''

  static async create(
    name: string,
    role: Role,
    environment: Record<string, string>,
  ): Promise<ServiceProcess> {
    return new ServiceProcess(name, role, environment, await freePort())
  }

  private constructor(name: string, role: Role, environment: Record<string, string>, port: number) {
    this.name = name
    this.role = role
    this.url = `http://127.0.0.1:${port}`
    const listen: Record<string, string> =
      role === 'web' ? { PORT: String(port) } : { HEALTH_PORT: String(port) }
    this.#environment = { ...environment, HOST: '127.0.0.1', ROLES: role, ...listen }
  }

  get isAlive(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Resolves once its role runs. */
  async start(): Promise<void> {
    const { PATH = '', NODE_COMPILE_CACHE } = process.env
    const child = spawn(process.execPath, ['--import', PRELOAD, PROGRAM, 'serve', '--json'], {
      env: { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }), ...this.#environment },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#child = child
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      const lines = text.split('\n').filter((line) => line !== '' && !line.includes('"level":40'))
      if (lines.length > 0) this.log = `${this.log}${lines.join('\n')}\n`.slice(-LOG_CHARACTERS)
    })
    await new Promise<void>((resolve, reject) => {
      let printed = ''
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        if (printed.endsWith('}\n')) resolve()
      })
      child.once('exit', () => reject(new Error(`${this.name} ended before it ran: ${this.log}`)))
    })
  }

  /** SIGTERM, as a service manager sends it. Throws unless it ends well. */
  async terminate(): Promise<void> {
    const child = this.#child
    if (!child || !this.isAlive) return
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    await gone
    if (child.exitCode !== 0) throw new Error(`${this.name} ended with ${child.exitCode}: ${this.log}`)
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (!child || !this.isAlive) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** Runs a scheduled job as cron would, whole. What it throws is logged and recorded, not thrown here. */
  async runSchedule(job: ScheduledJob): Promise<void> {
    const child = this.#child
    if (!child?.connected) throw new Error(`${this.name} does not run`)
    const answer = once(child, 'message')
    const order: Order = { kind: 'schedule', job }
    child.send(order)
    const [said] = await answer
    if (said !== 'done') throw new Error(`${this.name}: ${said}`)
  }

  async isReady(): Promise<boolean> {
    return fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(60_000) }).then(
      async (answer) => {
        await answer.arrayBuffer()
        return answer.status === 200
      },
      () => false,
    )
  }
}
