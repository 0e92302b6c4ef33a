/**
 * Loaded before a test file: writes the processor time of the test process and of the child processes that it has waited
 * for, in milliseconds, to the file that `TEST_CPU_FILE` names. The database server's time is not part of it.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const MS_PER_TICK = 10
const file = process.env.TEST_CPU_FILE
// Child processes inherit the environment and report nothing of their own.
delete process.env.TEST_CPU_FILE
if (file && isMainThread) process.on('exit', () => writeFileSync(file, String(cpuMs())))

/** The processor time so far, ms. */
export function cpuMs(): number {
  return ownMs() + childrenMs()
}

function ownMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** `cutime` and `cstime` of proc_pid_stat(5); 0 where there is no /proc. */
function childrenMs(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[13]) + Number(fields[14])) * MS_PER_TICK
  } catch {
    return 0
  }
}
