// database: none
// mostly waits
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createLog } from './log.ts'
import { notifySystemd } from './systemd.ts'

/** Prints each datagram that arrives at a socket, as systemd would read it. */
const RECEIVER = `
import os, socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('listening', flush=True)
while True:
    for line in receiver.recv(4096).decode().splitlines():
        print(line, flush=True)
`

const canRun = (program: string, ...args: string[]) => spawnSync(program, args).status === 0
const it = suite<{ folder: string; receiver: ChildProcess; socket: string; next(): Promise<string> }>(
  'notifications to systemd',
)

it.before.each(async (world) => {
  world.folder = mkdtempSync(join(tmpdir(), 'affiliate-systemd-'))
  world.socket = join(world.folder, 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, world.socket], { stdio: ['ignore', 'pipe', 'inherit'] })
  world.receiver = receiver
  const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]()
  world.next = async () => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the receiver ended')
      if (value !== 'BARRIER=1') return value
    }
  }
  assert.is(await world.next(), 'listening')
})
it.after.each(async ({ folder, receiver }) => {
  receiver.kill()
  if (receiver.exitCode === null && receiver.signalCode === null) await once(receiver, 'close')
  rmSync(folder, { recursive: true, force: true })
})

if (canRun('systemd-notify', '--version') && canRun('python3', '--version')) {
  it('are ready when healthy, then signs of life while healthy, then stopping', async ({ socket, next }) => {
    let healthy: boolean | Error = new Error('no database')
    const stop = notifySystemd({
      environment: { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '40000' },
      log: createLog('silent'),
      async isHealthy() {
        if (healthy instanceof Error) throw healthy
        return healthy
      },
    })
    assert.is(await next(), 'STATUS=Waiting for the database')
    healthy = true
    assert.equal([await next(), await next()], ['READY=1', 'STATUS=Ready'])
    assert.equal([await next(), await next()], ['WATCHDOG=1', 'WATCHDOG=1'])
    healthy = false
    let line = await next()
    while (line === 'WATCHDOG=1') line = await next()
    assert.is(line, 'STATUS=The database does not answer')
    healthy = true
    assert.equal([await next(), await next()], ['WATCHDOG=1', 'STATUS=Ready'])
    const stopping = stop()
    while (line !== 'STOPPING=1') line = await next()
    assert.is(await next(), 'STATUS=Stopping')
    await stopping
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
