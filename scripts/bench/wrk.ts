import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type BenchRequest, CONNECTIONS, type LoadAnswer, type LoadOrder } from './load-order.ts'

/** The version of wrk on this machine, `null` where there is none. */
export function wrkVersion(): string | null {
  const { stdout } = spawnSync('wrk', ['-v'], { encoding: 'utf8' })
  return /^wrk (?:debian\/)?(\S+)/.exec(stdout ?? '')?.[1] ?? null
}

/**
 * One round by wrk, which costs a fraction of what a generator in JavaScript costs: a bare peer is not held up by who asks it. It
 * tells refusals (400 and above) apart from answers, but no two answers from each other.
 */
export async function runWrk(order: LoadOrder, status: number): Promise<LoadAnswer> {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-load-'))
  try {
    const script = join(folder, 'load.lua')
    writeFileSync(script, scriptOf(order))
    const args = ['-t', '1', '-c', String(CONNECTIONS), '-d', `${order.seconds}s`, '-s', script, order.url]
    const child = spawn('wrk', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
    return answerOf(said, status)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Told {
  requests: number
  us: number
  p50: number
  p99: number
  most: number
  refused: number
  failures: number
}

function answerOf(said: string, status: number): LoadAnswer {
  const last = said.trim().split('\n').at(-1) ?? ''
  if (!last.startsWith('{')) return { error: `wrk said: ${said}` }
  const { requests, us, p50, p99, most, refused, failures } = JSON.parse(last) as Told
  const statuses = { [status]: requests - refused, ...(refused > 0 && { '400 or above': refused }) }
  const ms = { p50: p50 / 1000, p99: p99 / 1000, most: most / 1000 }
  return { requests, perSecond: requests / (us / 1_000_000), ...ms, statuses, failures }
}

/** All connections go through one list in turn. */
function scriptOf({ url, requests, uniqueHeader }: LoadOrder): string {
  const { host } = new URL(url)
  const unique =
    uniqueHeader === null
      ? ''
      : ` .. ${lua(`${uniqueHeader}: bench-${crypto.randomUUID()}-`)} .. sent .. "\\r\\n"`
  return `
local requests = {${requests.map((request) => halvesOf(host, request)).join(',\n')}}
local sent = 0
request = function()
  sent = sent + 1
  local one = requests[sent % #requests + 1]
  return one[1]${unique} .. one[2]
end
done = function(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"us":%d,"p50":%f,"p99":%f,"most":%f,"refused":%d,"failures":%d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout
  ))
end
`
}

/** What stands before a header of its own, and what after it. */
function halvesOf(host: string, { method, path, headers, body }: BenchRequest): string {
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  const lines = Object.entries({ host, ...length, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `{${lua(`${method} ${path} HTTP/1.1\r\n${lines.join('')}`)}, ${lua(`\r\n${body ?? ''}`)}}`
}

/** A text as Lua writes it; beyond printable ASCII byte by byte. */
function lua(value: string): string {
  const bytes = [...Buffer.from(value)].map((byte) =>
    byte >= 32 && byte < 127 && byte !== 34 && byte !== 92
      ? String.fromCharCode(byte)
      : `\\${String(byte).padStart(3, '0')}`,
  )
  return `"${bytes.join('')}"`
}
