import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseOptions } from './options.ts'
import { runTests } from './run-tests.ts'

const RUNNER = fileURLToPath(new URL('../test.ts', import.meta.url))
const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url))

const NONE = { TEST_SQLITE_ONLY: undefined, TEST_POSTGRES_URL: 'postgres://user@127.0.0.1:1/none' }
const NEVER_ABORTED = new AbortController().signal

export interface RunnerResult {
  code: number | null
  output: string
  lastLine: string
}

export interface TinyProject {
  root: string
  /** Runs the runner over the project, in this process: starting one takes longer than most of what it runs. */
  run: (args?: string[], env?: NodeJS.ProcessEnv) => Promise<RunnerResult>
  /** The same as a process of its own, as users start it. */
  start: (args: string[]) => Promise<RunnerResult>
  /** Starts it, waits for `until`, and sends the signal. */
  interrupt: (signal: NodeJS.Signals, until: () => Promise<unknown>) => Promise<RunnerResult>
}

/** Uses a project of these files, which is removed afterwards. */
export async function withProject<T>(
  files: Record<string, string>,
  use: (project: TinyProject) => Promise<T>,
): Promise<T> {
  const project = await tinyProject(files)
  return use(project).finally(() => rm(project.root, { recursive: true, force: true }))
}

/** A project of a few invented files in a temporary directory, for the runner to run over. */
async function tinyProject(files: Record<string, string>): Promise<TinyProject> {
  const root = await mkdtemp(join(tmpdir(), 'affiliate-tiny-project-'))
  await symlink(PACKAGES, join(root, 'node_modules'))
  for (const [path, text] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  // The inner run must not inherit the options of the outer one.
  const environment = (more: NodeJS.ProcessEnv = {}) => ({ ...process.env, ...NONE, ...more })
  const run = async (args: string[] = [], env: NodeJS.ProcessEnv = {}) => {
    const [before, place] = [process.env, process.cwd()]
    const lines: string[] = []
    process.env = environment(env)
    process.chdir(root)
    try {
      const passed = await runTests(parseOptions(args, root), (line) => lines.push(line), NEVER_ABORTED)
      return resultOf(passed ? 0 : 1, `${lines.join('\n')}\n`)
    } finally {
      process.env = before
      process.chdir(place)
    }
  }
  const start = (args: string[]) => {
    const child = spawn(process.execPath, [RUNNER, '--root', root, ...args], { env: environment() })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk
      })
    }
    const result = once(child, 'close').then(([code]) => resultOf(code, output))
    return { child, result }
  }
  return {
    root,
    run,
    start: (args) => start(args).result,
    interrupt: async (signal, until) => {
      const { child, result } = start([])
      await until()
      child.kill(signal)
      return result
    },
  }
}

function resultOf(code: number | null, output: string): RunnerResult {
  return { code, output, lastLine: output.trimEnd().split('\n').at(-1) ?? '' }
}
