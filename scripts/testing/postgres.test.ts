// database: none
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import pg from 'pg'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventually } from '../../server/test/testkit/eventually.ts'
import { startPostgres } from './postgres.ts'

test('it can be stopped while it is still starting', async () => {
  const postgres = startPostgres()
  await postgres.stop()
  const failure = await postgres.url.catch((error: Error) => error.message)
  assert.match(String(failure), /stopped|initdb/)
})

test('it is real and durable, and gone with its files once the run was killed', async () => {
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
  const ask = async (sql: string) => Object.values((await client.query(sql)).rows[0])[0]
  for (const [sql, answer] of [
    ['show fsync', 'on'],
    ['show max_connections', '200'],
    ['show server_encoding', 'UTF8'],
    ["select 'B' < 'a'", true],
  ] as const)
    assert.is(await ask(sql), answer, sql)
  const directory = String(await ask('show data_directory'))
  run.kill('SIGKILL')
  await lost
  // A server that shuts down still takes connections for a moment, to refuse them.
  await eventually(async () => !(await answers(url)) && !existsSync(dirname(directory)))
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

test.run()
