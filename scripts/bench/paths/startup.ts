import { spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { endGroup } from '../../testing/process-group.ts'
import type { Bed } from '../bed.ts'
import type { Comparison, Measurement } from '../figures.ts'

const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))
const READY_WITHIN_MS = 1500
const HELP_WITHIN_MS = 250
const GIVE_UP_MS = 20_000

/** `npm start` until /readyz says yes, every role and the sandbox included, and `affiliate --help`; the first of each warms up. */
export async function benchStartup(bed: Bed): Promise<(Comparison | Measurement)[]> {
  const ready: number[] = []
  const help: number[] = []
  for (let round = 0; round <= bed.rounds; round += 1) {
    ready.push(await untilReady(bed.environment))
    help.push(helpTime())
  }
  const found: Measurement = {
    what: 'npm start until /readyz',
    database: bed.dialect,
    unit: 'ms',
    values: ready.slice(1),
    most: READY_WITHIN_MS,
  }
  if (bed.dialect === 'postgresql') return [found]
  return [
    found,
    { ...found, what: 'affiliate --help', database: null, values: help.slice(1), most: HELP_WITHIN_MS },
  ]
}

async function untilReady(settings: Record<string, string>): Promise<number> {
  const port = await freePort()
  const start = performance.now()
  const child = spawn('npm', ['start'], {
    cwd: REPOSITORY,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, HOST: '127.0.0.1', ...settings, PORT: String(port) },
  })
  try {
    while (!(await isReady(port))) {
      if (performance.now() - start > GIVE_UP_MS) throw new Error('npm start does not get ready')
      await pause(3)
    }
    return performance.now() - start
  } finally {
    if (child.pid !== undefined) await endGroup(child.pid)
  }
}

async function isReady(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
  await answer?.arrayBuffer()
  return answer?.status === 200
}

function helpTime(): number {
  const start = performance.now()
  const { status } = spawnSync(process.execPath, ['cli/affiliate.mjs', '--help'], { cwd: REPOSITORY })
  if (status !== 0) throw new Error(`affiliate --help ended with ${status}`)
  return performance.now() - start
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('no free port')
  return address.port
}
