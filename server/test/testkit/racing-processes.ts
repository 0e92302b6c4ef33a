import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

/**
 * Runs one program in several processes that start its `run` at the same moment, when each has done its `prepare`
 * (module code; imports are done there). Answers what each printed; throws when one fails.
 */
export async function raceProcesses(
  count: number,
  program: { prepare: string; run: string },
): Promise<string[]> {
  const code = `${program.prepare}
    process.send('ready')
    await new Promise((resolve) => process.once('message', resolve))
    process.disconnect()
    ${program.run}`
  const racers = Array.from({ length: count }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    })
    if (!child.stdout) throw new Error('no output to read')
    return { child, ready: once(child, 'message'), exit: once(child, 'exit'), output: text(child.stdout) }
  })
  // One that fails before it is ready must not leave the others waiting.
  await Promise.race([
    Promise.all(racers.map(({ ready }) => ready)),
    Promise.any(racers.map(({ exit }) => exit)),
  ])
  for (const { child } of racers) if (child.connected) child.send('go')
  return Promise.all(
    racers.map(async ({ exit, output }) => {
      const [code] = await exit
      if (code !== 0) throw new Error(`a process ended with ${code}`)
      return output
    }),
  )
}
