import { execFile } from 'node:child_process'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DemoStopped } from './demo-stopped.ts'

const MAIN = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))

/** How this program starts itself: the same Node and the same entry as `affiliate`. */
export const COMMAND_LINE: readonly [string, string] = [process.execPath, MAIN]

const COMMAND_WITHIN_MS = 60_000

export interface CommandSetting {
  folder: string
  environment: Record<string, string>
  signal: AbortSignal
}

/** A command ended with another exit code than 0. */
export class CommandFailed extends DemoStopped {
  readonly stdout: string
  constructor(args: readonly string[], stderr: string, stdout: string) {
    super(`affiliate ${args.join(' ')} failed: ${reasonIn(stderr)}`)
    this.name = 'CommandFailed'
    this.stdout = stdout
  }
}

/** Why a command failed, from what it wrote on stderr: the problem object of `--json`, or the line of an error. */
export function reasonIn(stderr: string): string {
  const lines = stderr.trim().split('\n').reverse()
  for (const line of lines) {
    const detail = line.startsWith('{') && detailOf(line)
    if (detail) return detail
  }
  return (lines.find((line) => /Error\b/.test(line)) ?? lines[0] ?? '').trim().slice(0, 500)
}

function detailOf(line: string): string | null {
  try {
    const { detail } = JSON.parse(line)
    return typeof detail === 'string' ? detail : null
  } catch {
    return null
  }
}

/** Runs an `affiliate` command with `--json` and `--yes` in a process of its own; answers what it printed. Throws `CommandFailed`. */
export function runCommand(setting: CommandSetting, args: readonly string[]): Promise<unknown> {
  const [node, main] = COMMAND_LINE
  const options = {
    cwd: setting.folder,
    env: setting.environment,
    signal: setting.signal,
    timeout: COMMAND_WITHIN_MS,
    maxBuffer: 16 * 1024 * 1024,
  }
  return new Promise((resolve, reject) => {
    execFile(node, [main, ...args, '--json', '--yes'], options, (error, stdout, stderr) => {
      if (error) reject(new CommandFailed(args, stderr || error.message, stdout))
      else resolve(JSON.parse(stdout))
    })
  })
}
