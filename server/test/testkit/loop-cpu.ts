/** Short beside any stall that matters, and rare enough to leave the loop idle. */
const TICK_MS = 2

/**
 * Measures how long the event loop of this thread is kept busy by its own work: in CPU time, so that other processes of a busy machine do
 * not count, as they would on a clock.
 */
export function measureLoopCpu() {
  let most = 0
  let before = process.threadCpuUsage()
  const tick = () => {
    const now = process.threadCpuUsage()
    most = Math.max(most, (now.user + now.system - before.user - before.system) / 1000)
    before = now
  }
  const timer = setInterval(tick, TICK_MS).unref()
  return {
    /** Returns the CPU milliseconds of this thread in the busiest stretch between two ticks of a timer. */
    stop() {
      clearInterval(timer)
      tick()
      return Math.round(most * 10) / 10
    },
  }
}
