/** Runs `work` with a `performance.now()` that stands still but when `pass` moves it on, by ms. */
export async function onMovingClock(work: (pass: (ms: number) => void) => Promise<void>): Promise<void> {
  const real = performance.now
  let now = real.call(performance)
  performance.now = () => now
  const pass = (ms: number) => {
    now += ms
  }
  await work(pass).finally(() => {
    performance.now = real
  })
}
