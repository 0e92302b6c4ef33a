import type { Api } from './api.ts'

/** What each procedure takes: `Inputs['offers']['create']`. */
export type Inputs = {
  [Group in keyof Api]: { [Name in keyof Api[Group]]: Part<Api[Group][Name], 'input'> }
}

/** What each procedure answers: `Outputs['sales']['list']`. For a subscription, one of its events. */
export type Outputs = {
  [Group in keyof Api]: { [Name in keyof Api[Group]]: Part<Api[Group][Name], 'output'> }
}

/**
 * Every procedure by its name: `client.offers.list.query({ … })`, `client.applications.apply.mutate({ … })`,
 * `client.live.changes.subscribe({}, { onData })`.
 */
export type MarketplaceClient = {
  [Group in keyof Api]: { [Name in keyof Api[Group]]: Procedure<Api[Group][Name]> }
}

type Part<Definition, Name extends string> = Definition extends { [Key in Name]: infer Type } ? Type : never

type Procedure<Definition> = Definition extends { type: 'query'; input: infer Input; output: infer Output }
  ? { query: Call<Input, Output> }
  : Definition extends { type: 'mutation'; input: infer Input; output: infer Output }
    ? { mutate: Call<Input, Output> }
    : Definition extends { type: 'subscription'; input: infer Input; output: infer Event }
      ? { subscribe(input: Input, handlers: StreamHandlers<Event>): Subscription }
      : never

/** Throws an error in which `problemIn` finds the reason if the service refuses the call. */
export type Call<Input, Output> = undefined extends Input
  ? (input?: Input, options?: CallOptions) => Promise<Output>
  : (input: Input, options?: CallOptions) => Promise<Output>

export interface CallOptions {
  /** Cancels the call. */
  signal?: AbortSignal
  /**
   * For a call that makes something: 1 to 64 printable characters. Within 24 hours, the same call with the same key gets the first answer and
   * makes nothing.
   */
  idempotencyKey?: string
}

export interface StreamHandlers<Event> {
  onData: (event: Event) => void
  /** Called once when the service refuses or ends the stream with an error; `problemIn` finds the reason. */
  onError?: (error: Error) => void
  /** Called each time the stream is connected. It reconnects by itself and misses no event. */
  onStarted?: () => void
  /** Called when the service ends the stream. */
  onStopped?: () => void
  /** Ends the stream. */
  signal?: AbortSignal
}

export interface Subscription {
  unsubscribe(): void
}
