import type { Clock } from '../../server/platform/clock.ts'

/** A clock that stands until it is moved. Times in epoch ms. */
export class MovingClock implements Clock {
  #now: number

  constructor(start: number) {
    this.#now = start
  }

  now(): number {
    return this.#now
  }

  /** Never moves back. */
  moveTo(time: number): void {
    this.#now = Math.max(this.#now, time)
  }
}
