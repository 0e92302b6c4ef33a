import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'

export interface TestPostgres {
  /** Resolves once the server answers; rejects with the reason when it cannot run here. */
  url: Promise<string>
  stop: () => Promise<void>
}

const KEEPER = fileURLToPath(new URL('postgres-keeper.ts', import.meta.url))

/**
 * Starts one real PostgreSQL on a free port in a new directory in `place`. It ends with this process at the latest. `asInUse`: with
 * PostgreSQL's default settings, for benchmarks.
 */
export function startPostgres(place = tmpdir(), { asInUse = false } = {}): TestPostgres {
  const keeper = spawn(process.execPath, [KEEPER, ...(asInUse ? ['as-in-use'] : [])], {
    detached: true,
    env: { ...process.env, TMPDIR: place },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = once(keeper, 'close')
  let complaint = ''
  keeper.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    complaint += chunk
  })
  const url = new Promise<string>((resolve, reject) => {
    let said = ''
    keeper.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      if (said.endsWith('\n')) resolve(said.trim())
    })
    ended.then(() => reject(new Error(complaint.trim() || 'PostgreSQL was stopped')), reject)
  })
  // A run that ends before it needs the address must not fail with an unhandled rejection.
  url.catch(() => undefined)
  return {
    url,
    stop: async () => {
      keeper.stdin.end()
      await ended
    },
  }
}

/** The PostgreSQL that the environment names; nothing is started or stopped. */
export function givenPostgres(url: string): TestPostgres {
  return { url: Promise.resolve(url), stop: async () => undefined }
}
