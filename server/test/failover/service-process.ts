import { freePort } from '../../../scripts/testing/postgres-server.ts'
import type { ScheduledJob } from '../kill/kill-at.ts'
import { KillableServer } from '../kill/killable-server.ts'

export type Role = 'web' | 'worker' | 'scheduler'

/** One process of the real service with one role, on a port that it keeps over restarts. */
export class ServiceProcess extends KillableServer {
  readonly name: string
  readonly #port: number

  static async create(
    name: string,
    role: Role,
    environment: Record<string, string>,
  ): Promise<ServiceProcess> {
    return new ServiceProcess(name, role, environment, await freePort())
  }

  private constructor(name: string, role: Role, environment: Record<string, string>, port: number) {
    const listen = { [role === 'web' ? 'PORT' : 'HEALTH_PORT']: String(port) }
    super({
      environment: { ...environment, ROLES: role, ...listen },
      clockAhead: () => 0,
      onDeath: async () => {},
    })
    this.name = name
    this.#port = port
  }

  override get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** The end of what it has logged of errors, without the requests that it refused. */
  get log(): string {
    const lines = this.complaints.split('\n')
    return lines.filter((line) => !line.includes('"level":40')).join('\n')
  }

  /** Runs a scheduled job as cron would, whole. What it throws is logged and recorded, not thrown here. */
  async runSchedule(job: ScheduledJob): Promise<void> {
    if (!(await this.obey({ kind: 'schedule', job }))) throw new Error(`${this.name} does not run`)
  }

  async isReady(): Promise<boolean> {
    const answer = await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(60_000) }).catch(
      () => null,
    )
    await answer?.arrayBuffer()
    return answer?.status === 200
  }
}
