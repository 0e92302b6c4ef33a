import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

/** How long a process has for its last steps after SIGTERM, ms. */
const GRACE = 1000
/** The first and the longest pause between two looks at all processes, ms. */
const PAUSE = { first: 20, longest: 500 }

/** Sends a signal to a process group. Returns whether it has any process. */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    return false
  }
}

/** Ends a process group: SIGTERM first, so that it can remove its files, and SIGKILL after a second. */
export async function endGroup(group: number): Promise<void> {
  signalGroup(group, 'SIGTERM')
  if (await isEmptyWithin(group, GRACE)) return
  signalGroup(group, 'SIGKILL')
  await isEmptyWithin(group, GRACE)
}

/** Waits until no process of the group runs, at most `limit` ms. Returns whether none does. */
export async function isEmptyWithin(group: number, limit: number): Promise<boolean> {
  const end = performance.now() + limit
  for (let pause = PAUSE.first; await isAlive(group); pause = Math.min(2 * pause, PAUSE.longest)) {
    if (performance.now() >= end) return false
    await sleep(pause)
  }
  return true
}

/**
 * A group also exists while only zombies are in it, and in a container whose first process does not reap children they
 * stay. Where /proc exists, checks the state of each process.
 */
async function isAlive(group: number): Promise<boolean> {
  if (!signalGroup(group, 0)) return false
  const processes = await readdir('/proc').catch(() => null)
  if (!processes) return true
  for (const pid of processes.filter((name) => /^\d+$/.test(name))) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (Number(processGroup) === group && state !== 'Z' && state !== 'X') return true
  }
  return false
}
