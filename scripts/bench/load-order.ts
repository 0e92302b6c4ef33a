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
  inTurn: boolean
}

export type LoadAnswer =
  | { error: string }
  | {
      requests: number
      perSecond: number
      p50: number
      p99: number
      most: number
      statuses: Record<string, number>
      failures: number
    }

export const CONNECTIONS = 64
