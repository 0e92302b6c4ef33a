import { spawn } from 'node:child_process'
import {
  passwordOf,
  withDatabaseName,
  withoutPassword,
} from '../../server/platform/database/postgres-address.ts'
import { Failure } from '../failures.ts'

/** A database address as PostgreSQL's programs take it: the password goes by the environment, where `ps` does not show it. */
export function toolAddress(databaseUrl: string) {
  const password = passwordOf(databaseUrl)
  return {
    // `no-verify` is a word of the service's driver.
    url: withoutPassword(databaseUrl).replace(/([?&]sslmode=)no-verify(?=&|$)/, '$1require'),
    environment: { ...process.env, ...(password ? { PGPASSWORD: password } : {}) },
  }
}

/**
 * Runs one of PostgreSQL's programs to its end and returns what it printed. It ends with this process. Throws a `Failure` with
 * its last line when it fails, or with `missing` added when it is not installed.
 */
export async function runTool(
  program: 'pg_dump' | 'pg_restore',
  args: readonly string[],
  options: { environment?: NodeJS.ProcessEnv; missing?: string } = {},
): Promise<string> {
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: options.environment ?? process.env,
  })
  const end = () => child.kill()
  process.once('exit', end)
  let complaint = ''
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-4000)
  })
  const ending = await new Promise<string>((done, failed) => {
    child.once('error', failed)
    child.once('close', (code, signal) => done(signal ? `ended by ${signal}` : `exit code ${code}`))
  })
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      const install = `${program} is not on PATH. Install PostgreSQL's client tools`
      throw new Failure(`${install}${options.missing ?? ''}.`)
    })
    .finally(() => process.off('exit', end))
  if (ending === 'exit code 0') return output
  throw new Failure(`${program} failed: ${complaintOf(complaint) ?? ending}`)
}

/** The last line that states an error; what follows it says where, e.g. `Command was: ...`. */
function complaintOf(text: string): string | undefined {
  const lines = text.trim().split('\n').filter(Boolean)
  return lines.findLast((line) => /error:/i.test(line)) ?? lines.at(-1)
}

/** A name as SQL writes it. */
export function quotedName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The shell command that puts `restored` in place of `present`, which becomes `PRESENT_former`. It connects to `maintenance`. */
export function swapCommand(url: string, maintenance: string, present: string, restored: string): string {
  const server = toolAddress(withDatabaseName(url, maintenance)).url
  const rename = (from: string, to: string) =>
    `-c ${shellWord(`alter database ${quotedName(from)} rename to ${quotedName(to)}`)}`
  return `psql ${shellWord(server)} -v ON_ERROR_STOP=1 ${rename(present, `${present}_former`)} ${rename(restored, present)}`
}

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
