import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseOptions, type RunOptions, USAGE } from './testing/options.ts'
import { runTests } from './testing/run-tests.ts'

const REPOSITORY = fileURLToPath(new URL('..', import.meta.url))

function readOptions(): RunOptions | null {
  try {
    return parseOptions(process.argv.slice(2), REPOSITORY)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    console.error(USAGE)
    return null
  }
}

/** Ends all children and the database on the first signal, and answers as a shell expects. */
function interruption(): { signal: AbortSignal; exitCode: () => number } {
  const controller = new AbortController()
  let code = 1
  const codes = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
  for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      code = codes[name]
      controller.abort()
    })
  }
  return { signal: controller.signal, exitCode: () => code }
}

const options = readOptions()
if (options) {
  const { signal, exitCode } = interruption()
  const root = resolve(options.root)
  // The coverage report resolves its patterns from the working directory.
  process.chdir(root)
  const passed = await runTests({ ...options, root }, (line) => process.stdout.write(`${line}\n`), signal)
  if (!passed) process.exitCode = exitCode()
} else {
  process.exitCode = 1
}
