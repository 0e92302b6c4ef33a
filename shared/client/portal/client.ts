import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { createClient, type Outputs, type Problem, problemIn } from '../index.ts'
import { kept, keptInTab, type Store, store } from './state.ts'
import { key } from './text.ts'

export type User = Outputs['users']['me']
export type Role = User['role']
export type LiveEvent = Outputs['live']['changes']['data']

/** Whether the service answers. While it does not, the shell says so. */
export const reachable = store(true)

const LOOK_MS = 2000

/**
 * `fetch` that notices when the service is gone. A visitor's catalogue is asked for without headers: Firefox takes what was fetched with
 * the page only for such a call.
 */
const watchedFetch: typeof fetch = (address, init) => {
  const isCatalogue = session.get() === null && /\/trpc\/offers\./.test(String(address))
  return fetch(address, isCatalogue ? { ...init, headers: {} } : init).catch((error: unknown) => {
    if (!init?.signal?.aborted && reachable.get()) {
      reachable.set(false)
      setTimeout(probe, LOOK_MS)
    }
    throw error
  })
}

async function probe(): Promise<void> {
  const answer = await fetch('/healthz').catch(() => null)
  if (answer?.ok) reachable.set(true)
  else setTimeout(probe, LOOK_MS)
}

/** The only client of the page. */
export const client = createClient({ url: location.origin, session: 'cookie', fetch: watchedFetch })

/** Saves a file of the service. A plain link could not: it sends no session. */
export async function download(path: string): Promise<void> {
  const answer = await watchedFetch(path, { headers: { 'X-Session': 'cookie' } })
  // A proxy in front of a service that is gone answers with a page.
  if (!answer.ok) throw refusal(await answer.json().catch(() => ({ detail: NO_ANSWER })))
  const [, name = ''] = /filename="([^"]+)"/.exec(answer.headers.get('content-disposition') ?? '') ?? []
  const href = URL.createObjectURL(await answer.blob())
  Object.assign(document.createElement('a'), { href, download: name }).click()
  URL.revokeObjectURL(href)
}

/** The account that is logged in; `null` for a visitor, `undefined` until that is known. */
export const session = store<User | null | undefined>(undefined)

export const useRole = (): Role | undefined => session.use()?.role

/** Whose session the browser has; all tabs share it. Where the browser refuses storage but keeps cookies, only the service knows. */
const ACCOUNT = 'portal.account'

/** Whether there can be a session. `navigator.cookieEnabled` is true in a Chromium that is set to refuse cookies. */
function keepsCookies(): boolean {
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing without TLS
  document.cookie = 'portal=1; Max-Age=1; SameSite=Strict'
  return document.cookie.includes('portal=1')
}

/**
 * Loads the account of the session. What the browser has kept of it stands in until then, so that the first screen asks at the same time.
 * Asks nothing in a browser that was never logged in: the refusal would be an error in its console.
 */
export async function startSession(): Promise<void> {
  const stored = kept.get<User>(ACCOUNT)
  const known = stored === undefined && !keepsCookies() ? null : stored
  session.set(known)
  restoreAnswers()
  if (known === null) return
  const isSame = () => session.get() === known
  try {
    const user = await client.users.me.query()
    if (isSame()) session.set(user)
  } catch (error) {
    if (!isRefused(error, 'unauthenticated', 'forbidden')) setTimeout(startSession, LOOK_MS)
    else if (isSame()) forgetSession()
  }
}

/** Shows the account that logged in. Refused if the browser has not kept the session's cookie. */
export async function logIn({ user }: Outputs['auth']['login']): Promise<void> {
  await client.users.me.query().catch((error) => {
    if (isRefused(error, 'unauthenticated')) throw refusal({ detail: NO_COOKIES })
  })
  forgetAnswers()
  kept.set(ACCOUNT, { id: user.id, role: user.role, display_name: user.display_name })
  session.set(user)
}

/** Forgets the account in this page. */
export function forgetSession(): void {
  forgetAnswers()
  // Another tab may have logged in to another account.
  if (kept.get<User>(ACCOUNT)?.id === session.get()?.id) kept.set(ACCOUNT, null)
  session.set(null)
}

// Another tab logged in or out.
addEventListener('storage', ({ key }) => {
  if (key !== ACCOUNT) return
  forgetAnswers()
  void startSession()
})

const NO_ANSWER = key('The service does not answer.')
const NO_COOKIES = key('Your browser refuses cookies of this page. Allow them to log in.')

type Said = Pick<Problem, 'detail'> & Partial<Problem>

/** A refusal that did not come through the client. */
export const refusal = (problem: Said) => Object.assign(new Error(problem.detail), { problem })

/** What is known of a failed call. */
export function problemOf(error: unknown): Said {
  const unknown = { detail: reachable.get() ? key('Something went wrong. Try again.') : NO_ANSWER }
  return (error as { problem?: Said } | undefined)?.problem ?? problemIn(error) ?? unknown
}

export const isRefused = (error: unknown, ...codes: Problem['code'][]) =>
  codes.some((code) => code === problemOf(error).code)

/** A refused session ends in this page; the shell then shows the log-in. */
function notice(error: unknown): void {
  if (session.get() && isRefused(error, 'unauthenticated')) forgetSession()
}

export interface Answer<Data> {
  data?: Data | undefined
  error?: unknown
}

interface Entry<Data> extends Store<Answer<Data>> {
  running?: Promise<void> | undefined
  next?: Promise<void> | undefined
}
/** The latest used is the last. */
const cache = new Map<string, Entry<unknown>>()
const MOST_CACHED = 50

/** What the screens had when the page was left. They show it at once when it is opened again, until the service answers. */
const ANSWERS = 'portal.answers'
interface Kept {
  /** What answers look like may change with it. */
  script: string
  account: string | undefined
  answers: [key: string, json: string][]
}
/** An answer that is longer, such as a list of thousands, is not worth the time. */
const MOST_KEPT = 100_000
/** The key of the script of the screens, which is not an answer of the service. */
export const SCREENS = 'screens'

/** A visitor's are public. Those of an account stay in the tab. */
const placeOfAnswers = () => (session.get() === null ? kept : keptInTab)

document.addEventListener('visibilitychange', () => {
  if (!document.hidden || session.get() === undefined) return
  const answers = [...cache]
    .map(([key, entry]): [string, string] => [key, JSON.stringify(entry.get().data) ?? ''])
    .filter(([key, json]) => key !== SCREENS && json !== '' && json.length < MOST_KEPT)
  placeOfAnswers().set(ANSWERS, { script: import.meta.url, account: session.get()?.id, answers })
})

function restoreAnswers(): void {
  const { script, account, answers = [] } = placeOfAnswers().get<Kept>(ANSWERS) ?? {}
  if (script !== import.meta.url || account !== session.get()?.id) return
  for (const [key, json] of answers) if (!cache.has(key)) cache.set(key, store({ data: JSON.parse(json) }))
}

function forgetAnswers(): void {
  cache.clear()
  keptInTab.set(ANSWERS, null)
}

/** Tells the console of a bug. What was answered may have led to it, so it is asked for again. */
export function report(bug: unknown): void {
  forgetAnswers()
  reportError(bug)
}

function entryOf<Data>(key: string): Entry<Data> {
  const entry = cache.get(key) ?? store<Answer<unknown>>({})
  cache.delete(key)
  cache.set(key, entry)
  for (const [oldest] of cache) if (cache.size > MOST_CACHED) cache.delete(oldest)
  return entry as Entry<Data>
}

/**
 * What `load` answers, again when the key changes and after the service was gone. A key that was loaded before shows what it had until
 * the answer comes. `update` changes what is shown.
 */
export function useQuery<Data>(key: string, load: (former?: Data) => Promise<Data>) {
  const entry = entryOf<Data>(key)
  const answer = entry.use()
  const latest = useRef(load)
  latest.current = load
  const reload = useCallback((): Promise<void> => {
    const ask = async () => {
      const { data } = entry.get()
      const asked: Answer<Data> = { data }
      entry.set(asked)
      const answered: Answer<Data> = await latest.current(data).then(
        (data) => ({ data }),
        (error: unknown) => ({ data, error }),
      )
      notice(answered.error)
      if (entry.get() === asked) entry.set(answered)
      // An update came between: the answer may lack its row.
      else void reload()
    }
    // A running call may have read too early: one more follows it, for all who ask until then.
    entry.next ??= Promise.resolve(entry.running).then(() => {
      entry.next = undefined
      entry.running = ask()
      return entry.running
    })
    return entry.next
  }, [entry])
  const isReachable = reachable.use()
  useEffect(() => {
    if (isReachable) void reload()
  }, [reload, isReachable])
  const update = (change: (data: Data) => Data) => {
    const { data } = entry.get()
    if (data !== undefined) entry.set({ data: change(data) })
  }
  return { ...answer, reload, update }
}

/** Set while a call waits for the password; the shell asks for it and calls `confirm` or `cancel`. */
export const stepUp = store<{ confirm(): void; cancel(): void } | null>(null)

const confirmed = <Result>(call: () => Promise<Result>): Promise<Result> =>
  call().catch(async (error: unknown) => {
    if (!isRefused(error, 'step_up_required')) throw error
    const answered = new Promise<void>((resolve, reject) => {
      stepUp.set({ confirm: resolve, cancel: () => reject(error) })
    })
    await answered.finally(() => stepUp.set(null))
    return call()
  })

/** A call that changes something. `given` is what is known of its input, `done` takes its answer. */
export interface Change<Result = unknown> {
  call: (input: never) => Promise<Result>
  given?: object | undefined
  done?(answer: Result): unknown
}

/** Makes a change with the rest of its input; `error` says why it failed. Asks for the password where the service wants it. */
export function useChange<Result>({ call, given, done }: Change<Result>) {
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false })
  const run = async (input: object) => {
    if (state.busy) return
    setState({ busy: true })
    try {
      const answer = await confirmed(() => call({ ...given, ...input } as never))
      await done?.(answer)
      setState({ busy: false })
    } catch (error) {
      notice(error)
      setState({ busy: false, error })
    }
  }
  return { ...state, run }
}

/** Calls `look` again and again while the screen is seen, for what no live event tells. */
export function usePoll(look: () => unknown, isOn = true, every = LOOK_MS): void {
  useEffect(() => {
    const timer = setInterval(() => isOn && !document.hidden && look(), every)
    return () => clearInterval(timer)
  }, [look, isOn, every])
}

const followers = new Set<(event: LiveEvent) => void>()

/** Calls `take` for each live change of this kind while the component is shown. */
export function useLive<Kind extends LiveEvent['kind']>(
  kind: Kind,
  take: (event: Extract<LiveEvent, { kind: Kind }>) => void,
): void {
  useEffect(() => {
    const follower = (event: LiveEvent) => {
      if (event.kind === kind) take(event as Extract<LiveEvent, { kind: Kind }>)
    }
    followers.add(follower)
    return () => void followers.delete(follower)
  })
}

const FIGURES_MS = 15_000
/** Calls `reload` after each live change, and at times for what no event tells: clicks, pending orders, an invoice that another paid. */
export function useFigures(reload: () => unknown): void {
  useLive('sale', reload)
  useLive('payout', reload)
  useLive('billing_cycle', reload)
  usePoll(reload, true, FIGURES_MS)
}

/** Follows the account's changes until the answered function is called. The stream reconnects by itself and misses nothing. */
export function followChanges(): () => void {
  const { unsubscribe } = client.live.changes.subscribe(
    {},
    {
      onData: ({ data }) => {
        for (const follower of [...followers]) follower(data)
      },
      onError: notice,
    },
  )
  return unsubscribe
}
