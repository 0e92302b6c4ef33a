import { freePort } from '../../../scripts/testing/postgres-server.ts'
import type { ScheduledJob } from '../kill/kill-at.ts'
import { KillableServer } from '../kill/killable-server.ts'

export type Role = 'web' | 'worker' | 'scheduler'

/** One process of the real service with one role, on a port that it keeps over restarts. */
export class ServiceProcess {
  readonly name: string
  readonly role: Role
  readonly url: string
  readonly #server: KillableServer

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
    const listen = { [role === 'web' ? 'PORT' : 'HEALTH_PORT']: String(port) }
    this.#server = new KillableServer({
      environment: { ...environment, ROLES: role, ...listen },
      clockAhead: () => 0,
      onDeath: async () => {},
    })
  }

  get isAlive(): boolean {
    return this.#server.isAlive
  }

  /** The end of what it has logged of errors, without the requests that it refused. */
  get log(): string {
    return this.#server.complaints
      .split('\n')
      .filter((line) => !line.includes('"level":40'))
      .join('\n')
  }

  /** Resolves once its role runs. */
  async start(): Promise<void> {
    await this.#server.alive()
  }

  /** SIGTERM, as a service manager sends it. Throws unless it ends well. */
  terminate(): Promise<void> {
    return this.#server.stop()
  }

  kill(): Promise<void> {
    return this.#server.kill()
  }

  /** Runs a scheduled job as cron would, whole. What it throws is logged and recorded, not thrown here. */
  async runSchedule(job: ScheduledJob): Promise<void> {
    if (!(await this.#server.obey({ kind: 'schedule', job }))) throw new Error(`${this.name} does not run`)
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
