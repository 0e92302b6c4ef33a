import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const ENTRY = fileURLToPath(new URL('../affiliate.mjs', import.meta.url))

/** The key of the testbed's vault, for commands that read what it sealed. */
export const APP_KEY = Buffer.alloc(32, 7).toString('base64')

export interface Ended {
  code: number | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  /** Settings; of the test's own environment only PATH and caches go along. */
  environment?: Record<string, string>
  input?: string
  folder?: string
}

/** Runs `affiliate` in a process of its own, as a script would: no terminal on any side. */
export function runAffiliate(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...args], {
      cwd: options.folder,
      env: environmentOf(options.environment),
      stdio: 'pipe',
    })
    const ended: Ended = { code: null, stdout: '', stderr: '' }
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        ended[stream] += text
      })
    }
    // A command that needs no input may have ended before it is written.
    child.stdin.on('error', () => undefined)
    child.stdin.end(options.input ?? '')
    child.once('error', reject)
    child.once('close', (code) => resolve({ ...ended, code }))
  })
}

export function environmentOf(settings: Record<string, string> = {}): Record<string, string> {
  const { PATH = '', NODE_V8_COVERAGE, NODE_COMPILE_CACHE } = process.env
  return {
    ...{ PATH, DRAIN_SECONDS: '0' },
    ...(NODE_V8_COVERAGE && { NODE_V8_COVERAGE }),
    ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }),
    ...settings,
  }
}
