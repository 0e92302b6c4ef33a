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
} & Pages

interface Pages {
  /**
   * Every item of a list, page by page: `for await (const sale of client.pages(client.sales.list, { acceptance_status: 'accepted' }))`.
   * `limit` of the input is the size of a page, 100 by default.
   */
  pages<Input extends { cursor?: string | undefined } | undefined, Item>(
    list: {
      query: (input: Input, options?: CallOptions) => Promise<{ items: Item[]; next_cursor: string | null }>
    },
    ...given: undefined extends Input
      ? [input?: NoInfer<Input>, options?: CallOptions]
      : [input: NoInfer<Input>, options?: CallOptions]
  ): AsyncGenerator<Item, void, undefined>
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
  signal?: AbortSignal | undefined
  /**
   * For a call that makes something: 1 to 64 printable characters. Within 24 hours, the same call with the same key gets the first answer and
   * makes nothing.
   */
  idempotencyKey?: string | undefined
}

export interface StreamHandlers<Event> {
  onData: (event: Event) => void
  /** Called once when the service refuses or ends the stream with an error; `problemIn` finds the reason. */
  onError?: ((error: Error) => void) | undefined
  /** Called each time the stream is connected. It reconnects by itself and misses no event. */
  onStarted?: (() => void) | undefined
  /** Called when the service ends the stream. */
  onStopped?: (() => void) | undefined
  /** Ends the stream. */
  signal?: AbortSignal | undefined
}

export interface Subscription {
  unsubscribe(): void
}
