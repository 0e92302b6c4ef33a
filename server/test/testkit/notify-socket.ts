import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** Prints each line that arrives at a datagram socket, as systemd would read it. Node has no such sockets. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('listening', flush=True)
while True:
    for line in receiver.recv(4096).decode().splitlines():
        print(line, flush=True)
`

/** A socket as systemd has one for the notifications of a service. Needs python3 on PATH. */
export async function openNotifySocket(folder: string) {
  const path = join(folder, 'notify')
  const receiver = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface(receiver.stdout)[Symbol.asyncIterator]()
  /** The next assignment, such as `READY=1`. */
  const next = async (): Promise<string> => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error('the receiver ended')
      if (value !== 'BARRIER=1') return value
    }
  }
  /** Skips all before this assignment. */
  const until = async (wanted: string) => {
    while ((await next()) !== wanted);
  }
  await until('listening')
  return {
    ...{ path, next, until },
    async close() {
      receiver.kill()
      await once(receiver, 'exit')
    },
  }
}
