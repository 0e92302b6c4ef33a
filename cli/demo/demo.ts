import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CommandFailed, runCommand } from './command-line.ts'
import type { DemoProcessor } from './demo-processor.ts'
import { DemoStopped } from './demo-stopped.ts'
import type { ServerProcess } from './server-process.ts'
import { NoAnswer, type ServiceClient } from './service-client.ts'

const FIRST_POLL_MS = 20
const LONGEST_POLL_MS = 80
const LIMIT_MS = 20_000
/** What a killed server held in its hands is taken up again only when its lease has run out. */
const LIMIT_AFTER_A_DEATH_MS = 150_000
const EXPLAIN_AFTER_MS = 3000

/** The names under which a host's own environment reaches the server; settings of the service do not. */
const PASSED_ON = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'NODE_V8_COVERAGE']

/** The environment of the server and of the commands beside it, without the processor's: the same settings on every machine. */
export function demoEnvironment(folder: string): Record<string, string> {
  const own = PASSED_ON.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    ...Object.fromEntries(own),
    HOST: '127.0.0.1',
    DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}`,
    ROLES: 'web,worker,scheduler',
    // The story runs both jobs itself, with the commands that an operator has.
    SCHEDULE_BILLING: 'off',
    SCHEDULE_PAYOUTS: 'off',
    // A step that is repeated after a kill logs in again.
    RATE_LIMIT_AUTH: '0',
    RATE_LIMIT_PUBLIC: '0',
    RATE_LIMIT_USER: '0',
    LOG_LEVEL: 'warn',
    NO_COLOR: '1',
    // Each command is a process of its own, over much the same modules.
    NODE_COMPILE_CACHE: join(folder, 'compile-cache'),
  }
}

/** What every step works with. */
export class Demo {
  readonly folder: string
  readonly environment: Record<string, string>
  readonly processor: DemoProcessor
  readonly server: ServerProcess
  readonly client: ServiceClient
  readonly signal: AbortSignal
  /** Shows why nothing happens. */
  readonly note: (text: string) => void

  constructor(
    parts: Pick<Demo, 'folder' | 'environment' | 'processor' | 'server' | 'client' | 'signal' | 'note'>,
  ) {
    this.folder = parts.folder
    this.environment = parts.environment
    this.processor = parts.processor
    this.server = parts.server
    this.client = parts.client
    this.signal = parts.signal
    this.note = parts.note
  }

  /**
   * Runs an `affiliate` command beside the server. A command that fails while the server is being killed counts as
   * unanswered (`NoAnswer`); any other failure is thrown as it is.
   */
  async command(...args: string[]): Promise<unknown> {
    const before = this.server.restarts
    try {
      return await runCommand(this, args)
    } catch (error) {
      await this.server.ready()
      if (error instanceof CommandFailed && this.server.restarts !== before) {
        throw new NoAnswer(`affiliate ${args.join(' ')}`, error)
      }
      throw error
    }
  }

  /** Asks again and again until `probe` answers something; throws when that takes too long. */
  async until<Found>(what: string, probe: () => Promise<Found | null | undefined>): Promise<Found> {
    const started = performance.now()
    let explained = false
    for (let wait = FIRST_POLL_MS; ; wait = Math.min(wait * 1.5, LONGEST_POLL_MS)) {
      const found = await probe()
      if (found !== null && found !== undefined) return found
      const waited = performance.now() - started
      const mayBeLeased = this.server.restarts > 0
      if (mayBeLeased && !explained && waited > EXPLAIN_AFTER_MS) {
        explained = true
        this.note('what the dead server was working on is taken up again when its lease ends: up to a minute')
      }
      if (waited > (mayBeLeased ? LIMIT_AFTER_A_DEATH_MS : LIMIT_MS))
        throw new DemoStopped(`waited without success for ${what}`)
      await pause(wait, undefined, { signal: this.signal })
    }
  }
}
