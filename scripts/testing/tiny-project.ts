import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const RUNNER = fileURLToPath(new URL('../test.ts', import.meta.url))
const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url))

export interface RunnerResult {
  code: number | null
  output: string
  lastLine: string
}

export interface TinyProject {
  root: string
  /** Runs the real runner over the project and waits for its end. */
  run: (args?: string[], env?: NodeJS.ProcessEnv) => Promise<RunnerResult>
  /** Runs it until its output, or a file of the project, holds what `until` waits for; then sends the signal. */
  interrupt: (signal: NodeJS.Signals, until: () => Promise<void>) => Promise<RunnerResult>
  remove: () => Promise<void>
}

/** A project of a few invented files in a temporary directory, for the runner to run over. */
export async function tinyProject(files: Record<string, string>): Promise<TinyProject> {
  const root = await mkdtemp(join(tmpdir(), 'affiliate-tiny-project-'))
  await symlink(PACKAGES, join(root, 'node_modules'))
  for (const [path, text] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  // The inner run must not inherit the options of the outer one.
  const { TEST_SQLITE_ONLY, ...surroundings } = process.env
  const start = (args: string[], env: NodeJS.ProcessEnv = {}) => {
    const child = spawn(process.execPath, [RUNNER, '--root', root, ...args], {
      env: { ...surroundings, TEST_POSTGRES_URL: 'postgres://user@127.0.0.1:1/none', ...env },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk
      })
    }
    const result = once(child, 'close').then(([code]): RunnerResult => {
      return { code, output, lastLine: output.trimEnd().split('\n').at(-1) ?? '' }
    })
    return { child, result }
  }
  return {
    root,
    run: (args = [], env) => start(args, env).result,
    interrupt: async (signal, until) => {
      const { child, result } = start([])
      await until()
      child.kill(signal)
      return result
    },
    remove: () => rm(root, { recursive: true, force: true }),
  }
}
