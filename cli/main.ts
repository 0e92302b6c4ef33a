import { existsSync } from 'node:fs'
import { commandNames } from './command.ts'
import { reportFailure } from './failures.ts'
import { buildProgram, helpArguments } from './program.ts'
import { SETTINGS_FILES } from './settings-files.ts'
import { printLines } from './terminal/printable-text.ts'

/** Runs one command line. What it leaves in `process.exitCode`: 0 done, 1 refused or failed, 2 wrong usage. */
async function run(args: readonly string[]): Promise<void> {
  endOnFailedOutput()
  for (const file of SETTINGS_FILES) if (existsSync(file)) process.loadEnvFile(file)
  const program = buildProgram()
  try {
    await program.parseAsync(helpArguments(args, program), { from: 'user' })
  } catch (error) {
    process.exitCode = await reportFailure(error, args, commandNames(program))
  }
}

/** `affiliate … | head` closes our output while we write: that is no error. Any other failure to write is one line. */
function endOnFailedOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0)
      if (stream === process.stdout) {
        printLines([`affiliate: The output cannot be written: ${error.message}.`], process.stderr)
      }
      process.exit(1)
    })
  }
}

await run(process.argv.slice(2))
