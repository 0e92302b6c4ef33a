/** A request that the generator sends again and again. */
export interface BenchRequest {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: string
}

export interface LoadOrder {
  url: string
  seconds: number
  requests: readonly BenchRequest[]
  uniqueHeader: string | null
  sequential: boolean
  /**
   * Open loop: sends this many requests a second whether earlier ones are answered or not. `null`: saturation, each connection sends its
   * next request when it has the answer to the last one.
   */
  rate: number | null
}

export interface LoadAnswer {
  requests: number
  perSecond: number
  /** ms. */
  p50: number
  p99: number
  most: number
  statuses: Record<string, number>
  failures: number
}

export const CONNECTIONS = 64
