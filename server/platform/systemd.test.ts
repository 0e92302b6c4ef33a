// database: none
// mostly waits
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openNotifySocket } from '../test/testkit/notify-socket.ts'
import { createLog } from './log.ts'
import { notifySystemd } from './systemd.ts'

const canRun = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
const it = suite('notifications to systemd')

if (canRun('systemd-notify', '--version') && canRun('python3', '--version')) {
  it('are ready when healthy, then signs of life whatever the database does, then stopping', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'affiliate-systemd-'))
    const socket = await openNotifySocket(folder)
    const { next } = socket
    let healthy: boolean | Error = new Error('no database')
    const stop = notifySystemd({
      environment: { ...process.env, NOTIFY_SOCKET: socket.path, WATCHDOG_USEC: '40000' },
      log: createLog('silent'),
      async isHealthy() {
        if (healthy instanceof Error) throw healthy
        return healthy
      },
    })
    assert.is(await next(), 'STATUS=Waiting for the database')
    healthy = true
    await socket.until('READY=1')
    assert.is(await next(), 'STATUS=Ready')
    assert.equal([await next(), await next()], ['WATCHDOG=1', 'WATCHDOG=1'])
    healthy = false
    let line = await next()
    while (line === 'WATCHDOG=1') line = await next()
    assert.is(line, 'STATUS=The database does not answer')
    healthy = true
    assert.is(await next(), 'WATCHDOG=1', 'a database that is away does not stop the signs of life')
    await socket.until('STATUS=Ready')
    const stopping = stop()
    while (line !== 'STOPPING=1') line = await next()
    assert.is(await next(), 'STATUS=Stopping')
    await stopping
    await socket.close()
    rmSync(folder, { recursive: true })
  })
} else {
  it.skip('systemd-notify or python3 is not installed', () => {})
}

it('are none without a socket', async () => {
  let asked = 0
  const isHealthy = async () => {
    asked += 1
    return true
  }
  await notifySystemd({ environment: {}, log: createLog('silent'), isHealthy })()
  assert.is(asked, 0)
})

it.run()
