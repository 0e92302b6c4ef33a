// database: none
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import pg from 'pg'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { startPostgres } from './postgres.ts'

test('a real, durable PostgreSQL answers, and is gone with its files after the stop', async () => {
  const postgres = startPostgres()
  const url = await postgres.url
  const client = new pg.Client(url)
  await client.connect()
  const ask = async (sql: string) => Object.values((await client.query(sql)).rows[0])[0]
  const directory = String(await ask('show data_directory'))
  assert.is(await ask('show fsync'), 'on')
  assert.is(await ask('show max_connections'), '200')
  assert.is(await ask('show server_encoding'), 'UTF8')
  assert.is(await ask("select 'B' < 'a'"), true)
  await client.end()
  await postgres.stop()
  assert.not.ok(await answers(url))
  assert.not.ok(await holdsDirectory(directory))
})

test('it can be stopped while it is still starting', async () => {
  const postgres = startPostgres()
  await postgres.stop()
  const failure = await postgres.url.catch((error: Error) => error.message)
  assert.match(String(failure), /stopped|initdb/)
})

test('it does not outlive a run that was killed', async () => {
  const module = new URL('postgres.ts', import.meta.url).href
  const script = `import { startPostgres } from '${module}'
const { url } = startPostgres()
console.log(await url)
setInterval(() => {}, 1000)`
  const run = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = String((await once(run.stdout, 'data'))[0]).trim()
  const client = new pg.Client(url)
  const lost = new Promise((resolve) => client.once('end', resolve).on('error', () => undefined))
  await client.connect()
  run.kill('SIGKILL')
  await lost
  // A server that shuts down still takes connections for a moment, to refuse them.
  await eventually(async () => !(await answers(url)))
})

async function answers(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function holdsDirectory(path: string): Promise<boolean> {
  const names = await readdir(tmpdir())
  return names.some((name) => path.includes(name) && name.startsWith('affiliate-test-postgres-'))
}

test.run()
