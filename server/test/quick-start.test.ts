// proof only
// database: none
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freePort } from '../../scripts/testing/postgres-server.ts'
import { pluck } from './testkit/pluck.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** The README's block of commands that makes a sale. */
function quickStart(): string {
  const block = [...README.matchAll(/```sh\n([\s\S]*?)```/g)].find(([, text]) => text?.includes('api()'))?.[1]
  if (!block) throw new Error('README.md has no quick start block')
  return block
}

test('the README quick start runs as written, and again without writing anything twice', async () => {
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
    const block = quickStart().replaceAll('127.0.0.1:3000', `127.0.0.1:${port}`)
    const first = await run(`set -euo pipefail\n${block}`, env)
    assert.equal([first.status, first.stderr], [0, ''], first.stdout)
    assert.match(first.stdout, /^302 https:\/\/chenab\.myshopify\.com\/products\/kurta\?aff_ref=/m)
    assert.match(first.stdout, /✓\tpath-landing-site/)
    assert.match(first.stdout, EXPLAINED)
    const written = await rows(env)
    const second = await run(block, env)
    assert.is(second.status, 0, second.stderr)
    const refusals = second.stderr.trim().split('\n')
    assert.is(refusals.length, 7, second.stderr)
    for (const line of refusals) assert.match(line, /^(POST|PATCH) \S+ refused: [A-Z][^"{}]+\.$/)
    assert.is(refusals[0], 'POST /auth/register refused: There is an account with this e-mail already.')
    assert.match(second.stdout, /ignored\torder 6100000001009 is recorded already/)
    assert.match(second.stdout, EXPLAINED)
    assert.equal(await rows(env), written)
  } finally {
    service.kill('SIGTERM')
    if (service.exitCode === null) await once(service, 'close')
    rmSync(folder, { recursive: true, force: true })
  }
})

const EXPLAINED = /ACCEPTED: commission Rs 624\.88 to Zoya Malik/

async function run(script: string, env: NodeJS.ProcessEnv) {
  // By itself it would read a person's settings: it takes a socket at stdin for a remote login.
  const shell = spawn('bash', ['--norc', '-c', script], { cwd: ROOT, env })
  const ended = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const) {
    shell[stream].setEncoding('utf8').on('data', (text: string) => {
      ended[stream] += text
    })
  }
  const [status] = (await once(shell, 'close')) as [number]
  return { ...ended, status }
}

/** Everything that the quick start writes once. */
async function rows(env: NodeJS.ProcessEnv) {
  const list = async (command: string) => {
    const { stdout, stderr } = await run(`./cli/affiliate ${command} --json`, env)
    assert.is(stderr, '')
    return JSON.parse(stdout)
  }
  const [users, offers, stores, sales] = await Promise.all(
    ['users list', 'offers list', 'stores list', 'sales list'].map(list),
  )
  const ids = [users, offers, stores, sales].map(({ items }) => items.map(({ id }: { id: string }) => id))
  assert.equal(pluck(ids, 'length'), [2, 1, 1, 1])
  return ids
}

/** Rejects if it ends before. */
async function untilPrinted(child: ReturnType<typeof spawn>, pattern: RegExp): Promise<void> {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk))
  while (!pattern.test(output)) {
    if (child.exitCode !== null) throw new Error(`the service ended: ${output}`)
    await Promise.race([once(child.stdout ?? child, 'data'), once(child, 'exit')])
  }
}

test.run()
