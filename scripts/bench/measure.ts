/** What `work` takes, in ms. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** What each of so many runs of `work` takes, in ms. */
export async function repeatedly(times: number, work: () => Promise<unknown>): Promise<number[]> {
  const taken: number[] = []
  for (let time = 0; time < times; time += 1) taken.push(await timed(work))
  return taken
}

const MB = 1024 * 1024

/** By how much the resident memory of this process grew at most while `work` ran, in MB. */
export async function growthOf(work: () => Promise<unknown>): Promise<number> {
  globalThis.gc?.()
  const before = process.memoryUsage().rss
  let most = before
  const look = () => {
    most = Math.max(most, process.memoryUsage().rss)
  }
  const timer = setInterval(look, 5)
  try {
    await work()
  } finally {
    clearInterval(timer)
  }
  look()
  return (most - before) / MB
}

/** The processor time of this process, all threads, that `work` takes, in µs: a busy machine changes it less than the time. */
export async function cpuOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return user + system
}
