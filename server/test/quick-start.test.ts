// proof only
// time limit: 120 s
// database: none
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** The README's block of commands that makes a sale. */
function quickStart(): string {
  const block = [...README.matchAll(/```sh\n([\s\S]*?)```/g)].find(([, text]) => text?.includes('api()'))?.[1]
  if (!block) throw new Error('README.md has no quick start block')
  return block
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}

test('the README quick start runs as written and ends with an accepted sale', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'affiliate-quick-start-'))
  const port = await freePort()
  const { NODE_V8_COVERAGE, ...inherited } = process.env
  const env = {
    ...inherited,
    PATH: [join(ROOT, 'node_modules', '.bin'), process.env.PATH].join(delimiter),
    HOST: '127.0.0.1',
    PORT: String(port),
    DATABASE_URL: `sqlite:${join(folder, 'affiliate.db')}`,
    npm_config_update_notifier: 'false',
  }
  const service = spawn(process.execPath, [join(ROOT, 'cli', 'affiliate.mjs'), 'serve'], { cwd: ROOT, env })
  try {
    await untilPrinted(service, /is running/)
    const script = `set -euo pipefail\n${quickStart().replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)}`
    const shell = spawn('bash', ['-c', script], { cwd: ROOT, env })
    const output = collect(shell)
    const [status] = (await once(shell, 'close')) as [number]
    assert.is(status, 0, output())
    assert.match(output(), /location: https:\/\/chenab\.myshopify\.com\/products\/kurta\?aff_ref=/)
    assert.match(output(), /ACCEPTED: commission Rs 624\.88 to Sana Mirza/)
    assert.match(output(), /invariants hold/)
  } finally {
    service.kill('SIGTERM')
    if (service.exitCode === null) await once(service, 'close')
    rmSync(folder, { recursive: true, force: true })
  }
})

function collect(child: ReturnType<typeof spawn>): () => string {
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
  }
  return () => text
}

async function untilPrinted(child: ReturnType<typeof spawn>, pattern: RegExp): Promise<void> {
  const output = collect(child)
  while (!pattern.test(output())) {
    if (child.exitCode !== null) throw new Error(`the service ended: ${output()}`)
    await Promise.race([once(child.stdout ?? child, 'data'), once(child, 'exit')])
  }
}

test.run()
