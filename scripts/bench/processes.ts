import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** A process of the bench that listens somewhere. */
export interface Listening {
  url: string
  /** Processor time so far, µs; `null` where the system does not tell. */
  cpu(): number | null
  stop(): Promise<void>
}

const ENTRY = fileURLToPath(new URL('../../cli/affiliate.mjs', import.meta.url))
/** What a process is given besides its settings: nothing of the shell's may change what is measured. */
const INHERITED = ['PATH', 'HOME', 'TMPDIR']

/** The service through its own entry, with these settings. */
export function startServer(settings: Record<string, string>): Promise<Listening> {
  const served = { HOST: '127.0.0.1', PORT: '0', ROLES: 'web', ...settings }
  return listening([ENTRY, 'serve', '--json'], served, (said) => {
    try {
      return (JSON.parse(said) as { url: string }).url
    } catch {
      return null
    }
  })
}

/** A bare peer, by the name of its file; what it needs to know goes through its environment. */
export function startPeer(name: string, settings: Record<string, string> = {}): Promise<Listening> {
  const file = fileURLToPath(new URL(`peers/${name}.ts`, import.meta.url))
  return listening([file], settings, (said) => (said.endsWith('\n') ? said.trim() : null))
}

async function listening(
  args: string[],
  settings: Record<string, string>,
  read: (said: string) => string | null,
): Promise<Listening> {
  const inherited = INHERITED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))
  const child = spawn(process.execPath, args, {
    env: { ...Object.fromEntries(inherited), ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'close')
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
      const found = read(said)
      if (found !== null) resolve(found)
    })
    ended.then(() => reject(new Error(`${args.join(' ')} ended before it listened: ${said}`)), reject)
  })
  return {
    url,
    cpu: () => cpuOf(child),
    async stop() {
      child.kill('SIGTERM')
      const kill = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(kill)
    },
  }
}

/** Linux counts in hundredths of a second here on every machine that Node runs on. */
const TICK_US = 10_000

function cpuOf({ pid }: ChildProcess): number | null {
  if (process.platform !== 'linux') return null
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}
